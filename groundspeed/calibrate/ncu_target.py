"""What Nsight Compute profiles: each probe by name a few times, a mark before each call."""

from __future__ import annotations

import sys

from groundspeed.calibrate.ncu import REPEATS
from groundspeed.calibrate.probes import named


def main() -> None:
    import torch

    from groundspeed.measure.timers.probes import Flush

    torch.set_grad_enabled(False)
    device = torch.device("cuda", torch.cuda.current_device())
    runs = [probe.make("cuda") for probe in named("cuda", tuple(sys.argv[1:]))]
    flush = Flush(device)
    for run in runs:
        flush.mark()
        run()  # what is compiled or chosen at a first call is not to be profiled
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    for _ in range(REPEATS):
        for run in runs:
            flush.mark()
            run()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


if __name__ == "__main__":
    main()
