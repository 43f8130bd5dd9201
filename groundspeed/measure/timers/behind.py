"""Work issued behind a kernel that keeps the device busy, with an event on either side of each timed call.

The device comes to the first of it only when the spin ends, and by then the host has issued all: what lies between two
events is then the device's time alone, and never a wait for the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from groundspeed.measure.timers.base import Run

# Before a round's first train. Behind a synchronise the host has no lead yet: without this the first call of a round
# read 8 % more (eager matmul bf16 4096³, whose memset and product were pulled apart: 189 µs for 175).
PRELUDE_NS = 400_000

_MAX_SPIN_NS = 50_000_000
_LONGER = 4.0
_TRIES = 3


@dataclass(frozen=True)
class Issued:
    """Calls that are on their way. ``ahead`` says that the device had come to none of them when all were issued."""

    events: tuple[tuple[Any, Any], ...]
    ahead: bool

    def spans(self) -> list[float]:
        """Nanoseconds between each call's two events. The device must be done."""
        return [first.elapsed_time(second) * 1e6 for first, second in self.events]


class Blocker:
    """Keeps a device busy."""

    def __init__(self, device: torch.device) -> None:
        # Cycles of torch.cuda._sleep a nanosecond; it counts SM clocks, so at the highest clock it waits no less.
        self._cycles = torch.cuda.get_device_properties(device).clock_rate * 1e-6

    def block(self, nanoseconds: float) -> None:
        torch.cuda._sleep(int(self._cycles * min(_MAX_SPIN_NS, nanoseconds)))

    def issue(
        self,
        nanoseconds: float,
        before: Callable[[], object],
        calls: Sequence[Run],
        together: Callable[[], object] = lambda: None,
    ) -> Issued:
        """Block for so long, then ``before``, then each call between two events; waits for nothing.

        ``together`` is issued in front of each call's first event: ranks' streams meet in it.
        """
        self.block(nanoseconds)
        blocked = torch.cuda.Event()
        blocked.record()
        before()
        pairs = []
        for call in calls:
            first, second = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            together()
            first.record()
            call()
            second.record()
            pairs.append((first, second))
        return Issued(tuple(pairs), ahead=not blocked.query())

    def timed(self, nanoseconds: float, before: Callable[[], object], calls: Sequence[Run]) -> tuple[list[float], bool]:
        """Spans of the calls in ns, taken again behind a longer spin while the host was not ahead; whether it was."""
        for _ in range(_TRIES):
            issued = self.issue(nanoseconds, before, calls)
            torch.cuda.synchronize()
            if issued.ahead:
                break
            nanoseconds *= _LONGER
        return issued.spans(), issued.ahead


def nothing() -> None:
    """A call that issues no work."""
