"""Who else uses a GPU: asked of NVML before and after an operator is measured, from outside its worker."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from groundspeed.measure.gpu_state import Gpu

BUSY = 5  # per cent of the time: below, a desktop's windows are drawn
_SETTLE = 1.5  # seconds: NVML averages over up to one, and the worker that just ended may be in it
_LOOK = 0.1


@dataclass(frozen=True)
class Neighbours:
    """What others do on a GPU. In a container their processes may be invisible, and only what they do is seen.

    utilisation
        Per cent of the last second or less in which a kernel ran.
    """

    processes: int = 0
    memory_bytes: int = 0
    utilisation: int = 0

    @property
    def present(self) -> bool:
        return self.processes > 0 or self.working

    @property
    def working(self) -> bool:
        """Whether they ran kernels: then a time is not the GPU's own."""
        return self.utilisation >= BUSY

    def worse(self, other: Neighbours) -> Neighbours:
        """The larger of each figure."""
        return Neighbours(
            max(self.processes, other.processes),
            max(self.memory_bytes, other.memory_bytes),
            max(self.utilisation, other.utilisation),
        )

    def __str__(self) -> str:
        noun = "process" if self.processes == 1 else "processes"
        hold = "holds" if self.processes == 1 else "hold"
        who = f"{self.processes} other {noun} {hold} {self.memory_bytes / 2**30:.1f} GiB"
        if not self.processes:
            return f"it is {self.utilisation} % busy with processes that cannot be seen from here"
        return f"{who}, and it is {self.utilisation} % busy" if self.working else f"{who}, idle"


NOBODY = Neighbours()


def look(gpu: Gpu) -> Neighbours:
    """Who is there now, this process apart."""
    others = [memory for pid, memory in gpu.compute_processes() if pid != os.getpid()]
    return Neighbours(len(others), sum(others), gpu.utilisation())


def settled(
    gpu: Gpu, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
) -> Neighbours:
    """Who is there once what this run itself did last is out of the driver's figures."""
    deadline = now() + _SETTLE
    while True:
        seen = look(gpu)
        if not seen.present or now() >= deadline:
            return seen
        sleep(_LOOK)
