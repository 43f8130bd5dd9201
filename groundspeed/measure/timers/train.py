"""A sample as the device's record shows it, a little train in one stream:

    spin | flush | the work, cold | mark | the work, hot

Spin, flush and mark are told from the work by their names. A record that lost one of them would time two calls as
one, so it is refused.

What a call puts on other streams belongs to the call that launched it, whenever the device ran it: a kernel that waits
for nothing runs beside the spin, long before its call's turn, and one that nothing waits for runs on past the mark.
The order of the host's launches (CUPTI's correlation ids) tells whose it is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from groundspeed.measure.timers.base import Sample

FLUSH, MARK = "groundspeed_flush", "groundspeed_mark"
SPIN = "spin_kernel"  # torch.cuda._sleep's kernel


class TimerError(Exception):
    """The device's records do not show what was launched."""


@dataclass(frozen=True)
class Span:
    """One kernel, copy or set on the device, in nanoseconds of the record's clock.

    launch
        Grows with the order in which the host launched.
    """

    name: str
    start: int
    end: int
    stream: int = 0
    launch: int = 0


@dataclass
class _Train:
    """A sample whose flush has been seen; ``mark`` is None until the mark."""

    flush: Span
    mark: Span | None = None
    cold: list[Span] = field(default_factory=list)
    hot: list[Span] = field(default_factory=list)

    def sample(self) -> Sample:
        if self.mark is None:
            raise TimerError("a sample without a mark between its calls: the record is incomplete")
        elsewhere = [span for span in self.cold if span.stream != self.flush.stream]
        early = max((self.flush.end - span.start for span in elsewhere), default=0)
        late = max((span.end - self.mark.start for span in elsewhere), default=0)
        names = tuple(span.name for span in self.cold)
        each = tuple(length([span]) for span in self.cold)
        return Sample(length(self.cold), length(self.hot), names, float(max(early, late, 0)), each=each)


def cut(spans: Iterable[Span]) -> list[Sample]:
    """The samples of a record, in order. Spins may repeat; what runs between a spin and a flush is not the work.

    Raises TimerError where a spin, a flush or a mark is missing.
    """
    found: list[Sample] = []
    train: _Train | None = None
    for span in _as_launched(spans):
        if SPIN in span.name:
            if train is not None:
                found.append(train.sample())
            train = None
        elif span.name.startswith(FLUSH):
            if train is not None:
                raise TimerError("a flush follows a sample without a spin: the record is incomplete")
            train = _Train(span)
        elif span.name.startswith(MARK):
            if train is None or train.mark is not None:
                raise TimerError("a mark without a flush before it: the record is incomplete")
            train.mark = span
        elif train is not None:
            (train.cold if train.mark is None else train.hot).append(span)
    if train is not None:
        found.append(train.sample())
    return found


def _as_launched(spans: Iterable[Span]) -> list[Span]:
    """The train's own stream in the order it ran, and what ran on others behind what was launched just before it."""
    ordered = sorted(spans, key=lambda span: (span.start, span.end))
    own = next((span.stream for span in ordered if span.name.startswith(FLUSH)), None)
    trunk = [span for span in ordered if span.stream == own]
    others = [span for span in ordered if span.stream != own]
    if not trunk or not others:
        return ordered
    launches = list(accumulate((span.launch for span in trunk), max))
    behind: dict[int, list[Span]] = {}
    for span in others:
        behind.setdefault(bisect_right(launches, span.launch), []).append(span)
    merged = list(behind.get(0, ()))
    for place, span in enumerate(trunk, start=1):
        merged += [span, *behind.get(place, ())]
    return merged


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
