"""What a run is about to compile and tune, done beforehand and side by side, so that measuring finds it done.

A run measures one operator after the other, and must: two measurements on one GPU disturb each other. Compiling does
not need the GPU, and torch.compile in mode max-autotune was nine tenths of all preparing: 1,257 of 1,428 s, by the
longest that each implementation and case of tier core has on record on an H200. So before the first operator is
measured every case is prepared and run once, unmeasured, in as many workers as there are cores; their autotuners take
turns on the GPU (groundspeed.measure.turns). Then the workers that measure find the compilers' caches full, and beside
Triton's what its autotuners chose. It is a help and no more: what goes wrong in it is left for the measuring
to meet, and to report.
"""
