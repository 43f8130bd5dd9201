"""A sample as the device's record shows it, a little train in one stream:

    spin | flush | the work, cold | mark | the work, hot

Spin, flush and mark are told from the work by their names. A record that lost one of them would time two calls as
one, so it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from groundspeed.measure.timers.base import Sample

FLUSH, MARK = "groundspeed_flush", "groundspeed_mark"
SPIN = "spin_kernel"  # torch.cuda._sleep's kernel


class TimerError(Exception):
    """The device's records do not show what was launched."""


@dataclass(frozen=True)
class Span:
    """One kernel, copy or set on the device, in nanoseconds of the record's clock."""

    name: str
    start: int
    end: int


@dataclass
class _Train:
    """A sample whose flush has been seen."""

    cold: list[Span] = field(default_factory=list)
    hot: list[Span] | None = None  # until the mark

    def sample(self) -> Sample:
        if self.hot is None:
            raise TimerError("a sample without a mark between its calls: the record is incomplete")
        return Sample(length(self.cold), length(self.hot), tuple(span.name for span in self.cold))


def cut(spans: Iterable[Span]) -> list[Sample]:
    """The samples of a record, in order. Spins may repeat; what runs between a spin and a flush is not the work.

    Raises TimerError where a spin, a flush or a mark is missing.
    """
    found: list[Sample] = []
    train: _Train | None = None
    for span in spans:
        if SPIN in span.name:
            if train is not None:
                found.append(train.sample())
            train = None
        elif span.name.startswith(FLUSH):
            if train is not None:
                raise TimerError("a flush follows a sample without a spin: the record is incomplete")
            train = _Train()
        elif span.name.startswith(MARK):
            if train is None or train.hot is not None:
                raise TimerError("a mark without a flush before it: the record is incomplete")
            train.hot = []
        elif train is not None:
            (train.cold if train.hot is None else train.hot).append(span)
    if train is not None:
        found.append(train.sample())
    return found


def arrange(samples: Sequence[Sample], orders: Sequence[Sequence[int]]) -> list[list[Sample]]:
    """Samples in the order they were launched as rounds that hold run i's at place i.

    Raises TimerError when there are fewer or more than the orders say, and when a run shows work in some samples only.
    """
    launched = sum(map(len, orders))
    if len(samples) != launched:
        raise TimerError(f"{launched} samples launched, {len(samples)} on the record")
    rounds: list[list[Sample]] = []
    following = iter(samples)
    for order in orders:
        by_run = {index: next(following) for index in order}
        rounds.append([by_run[index] for index in sorted(by_run)])
    for column in zip(*rounds, strict=True):
        for calls in ([bool(one.kernels) for one in column], [one.hot > 0 for one in column]):
            if any(calls) and not all(calls):
                raise TimerError(f"work of a run is on the record of {sum(calls)} of its {len(calls)} calls")
    return rounds


def length(spans: Sequence[Span]) -> float:
    """From the first one's start to the last one's end; 0 for no work."""
    return float(max(span.end for span in spans) - min(span.start for span in spans)) if spans else 0.0
