"""What a timer offers to sampling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Run = Callable[[], Any]


@dataclass(frozen=True)
class Sample:
    """One implementation in one round. Nanoseconds.

    cold, hot
        Span of the work on the device after its L2 was emptied by a read, and right after another call.
    kernels
        Names of the device kernels of the cold call, in order; empty on a CPU.
    """

    cold: float
    hot: float
    kernels: tuple[str, ...] = ()


class Timer(Protocol):
    """Times runs in a given order."""

    name: str

    def collect(
        self, runs: Sequence[Run], orders: Sequence[Sequence[int]], host_ns: Sequence[float]
    ) -> list[list[Sample]]:
        """One list a round, holding the sample of ``runs[i]`` at place i.

        ``orders`` gives for each round the sequence in which the runs are called; ``host_ns`` how long the host takes
        to issue each of them, which a timer may need to keep the device from waiting for the host.
        """
