"""The eager formula through Inductor, one kernel for q and one for k, or one for both, the concatenation by index.

Memory-bound: each element is read twice, once for itself and once for the other of its pair (from L1 or L2 the second
time), and written once. Predicted: 80 to 90 % of the fused kernels' speed.

Reached on nvidia-h200 at 968ac8c4: 250 µs for float32 B=1,S=16384,H=32,G=1,D=128, 4.33 TB/s, 101 % of the memory
ceiling, 7.94 times as fast as torch_eager.
"""

import torch

from .torch_eager import rope, widened


def prepare(q, k, cos, sin):
    compiled = torch.compile(rope, dynamic=False, fullgraph=True, mode="max-autotune-no-cudagraphs")
    tables = widened(cos), widened(sin)

    def run():
        return compiled(q, k, *tables)

    run()
    return run
