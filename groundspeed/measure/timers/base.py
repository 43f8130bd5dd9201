"""What a timer offers to sampling."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Run = Callable[[], Any]


@dataclass(frozen=True)
class Sample:
    """One implementation in one round. Nanoseconds.

    cold, hot
        Span of the work on the device after its L2 was emptied by a read, and right after another call.
    kernels
        Names of the device kernels of the cold call, in order; empty on a CPU, and from a timer that sees none.
    astray
        By how much the call's work on other streams began before its turn or outlived it; it is part of the span.
    waited
        Whether the device had to wait for the host inside the call, however long a lead the host was given.
    each
        Span of each of ``kernels``. What lies between them, and what overlaps, is in ``cold`` alone.
    """

    cold: float
    hot: float
    kernels: tuple[str, ...] = ()
    astray: float = 0.0
    waited: bool = False
    each: tuple[float, ...] = field(default=(), compare=False)


class Timer(Protocol):
    """Times runs in a given order."""

    name: str
    sees_kernels: bool

    def fit(self, runs: Mapping[str, Run]) -> Fitted:
        """The timer for these runs, by their names: all of a case are timed by one, and not each timer can do each."""

    def collect(
        self, runs: Sequence[Run], orders: Sequence[Sequence[int]], host_ns: Sequence[float]
    ) -> list[list[Sample]]:
        """One list a round, holding the sample of ``runs[i]`` at place i.

        ``orders`` gives for each round the sequence in which the runs are called; ``host_ns`` how long the host takes
        to issue each of them, which a timer may need to keep the device from waiting for the host.
        """

    def once(self, call: Run) -> Sample:
        """One call, its caches as they are: both spans are that one."""


@dataclass(frozen=True)
class Fitted:
    """What a case is timed by, and what must be known of its readings: why it is another, what they hold besides."""

    timer: Timer
    remarks: tuple[str, ...] = ()


def sample_remarks(samples: Sequence[Sample]) -> list[str]:
    """What must be said of samples beside their values."""
    said = []
    astray = max((one.astray for one in samples), default=0.0)
    if astray > 0:
        said.append(f"work on another stream lies up to {astray / 1e3:.3g} µs outside its call; it is timed with it")
    waited = sum(one.waited for one in samples)
    if waited:
        said.append(f"the device waited for the host inside {waited} of {len(samples)} calls")
    return said
