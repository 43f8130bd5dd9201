"""The GPU's timer: CUPTI's own records of when each kernel began and ended, through Kineto.

An event pair reads 1.3 µs around nothing and more with every dependent launch; a kernel's own span has neither.
Each sample is a little train in one stream:

    spin | flush | the work, cold | mark | the work, hot

The spin keeps the device busy until the host has issued the whole train, so that a span of several kernels holds no
wait for the host. Flush, mark and spin are told from the work by their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd import profiler

from groundspeed.measure.timers.base import Run, Sample
from groundspeed.measure.timers.probes import FLUSH, MARK, SPIN, Flush

_ISSUE_NS = 60_000  # the host's time for flush, mark and the profiler's own callbacks, generously
_SLACK = 2.0  # CUPTI's callbacks slow every launch
_MAX_SPIN_NS = 3_000_000
# Before a round's first train. Behind a synchronise the host has no lead yet: without this the first call of a round
# read 8 % more (eager matmul bf16 4096³, whose memset and product were pulled apart: 189 µs for 175).
_PRELUDE_NS = 400_000
_PER_SESSION = 1500  # samples recorded at once: CUPTI drops records when its buffers overflow


class TimerError(Exception):
    """The device's records do not show what was launched."""


@dataclass(frozen=True)
class Span:
    """One kernel, copy or set on the device, in nanoseconds of CUPTI's clock."""

    name: str
    start: int
    end: int


class CuptiTimer:
    """Spans of kernels by CUPTI. One per process: the first use costs seconds, the others milliseconds."""

    name = "cupti"

    def __init__(self, device: torch.device) -> None:
        self._flush = Flush(device)
        # Cycles of torch.cuda._sleep a nanosecond; it counts SM clocks, so the highest clock bounds the wait below.
        self._cycles = torch.cuda.get_device_properties(device).clock_rate * 1e-6

    def collect(
        self, runs: Sequence[Run], orders: Sequence[Sequence[int]], host_ns: Sequence[float]
    ) -> list[list[Sample]]:
        rounds: list[list[Sample]] = []
        step = max(1, _PER_SESSION // max(1, len(runs)))
        for start in range(0, len(orders), step):
            rounds += self._session(runs, orders[start : start + step], host_ns)
        return rounds

    def _session(
        self, runs: Sequence[Run], orders: Sequence[Sequence[int]], host_ns: Sequence[float]
    ) -> list[list[Sample]]:
        cycles = [int(self._cycles * min(_MAX_SPIN_NS, _ISSUE_NS + 2 * _SLACK * host)) for host in host_ns]
        spans = record(lambda: self._issue(runs, orders, cycles))
        samples = iter(_samples(spans))
        rounds = []
        for order in orders:
            row: list[Sample | None] = [None] * len(runs)
            for index in order:
                row[index] = next(samples, None)
            if any(sample is None for sample in row):
                raise TimerError(f"{sum(map(len, orders))} samples launched, fewer on CUPTI's record: it dropped some")
            rounds.append([sample for sample in row if sample is not None])
        return rounds

    def _issue(self, runs: Sequence[Run], orders: Sequence[Sequence[int]], cycles: Sequence[int]) -> None:
        prelude = int(self._cycles * _PRELUDE_NS)
        for order in orders:
            torch.cuda._sleep(prelude)
            for index in order:
                run = runs[index]
                torch.cuda._sleep(cycles[index])
                self._flush()
                run()
                self._flush.mark()
                run()
            # A round at a time: the launch queue is finite, and a full one makes the host wait inside a train.
            torch.cuda.synchronize()


def record(issue: Any) -> list[Span]:
    """Run something and return what the device did meanwhile, in the order it began."""
    torch.cuda.synchronize()
    with profiler.profile(use_cpu=False, use_device="cuda", use_kineto=True) as session:
        issue()
        torch.cuda.synchronize()
    return _spans(session.kineto_results.events())


def _spans(events: Iterable[Any]) -> list[Span]:
    cuda = torch.autograd.DeviceType.CUDA
    found = [
        Span(event.name(), event.start_ns(), event.start_ns() + event.duration_ns())
        for event in events
        if event.device_type() == cuda and not event.name().endswith(" Sync") and not event.is_user_annotation()
    ]
    return sorted(found, key=lambda span: (span.start, span.end))


def _samples(spans: Iterable[Span]) -> Iterable[Sample]:
    """Cut the record into samples: a flush opens one, a mark parts its cold from its hot call, a spin ends it."""
    cold: list[Span] = []
    hot: list[Span] = []
    current: list[Span] | None = None
    opened = False
    for span in spans:
        if span.name.startswith(FLUSH) or SPIN in span.name:
            if opened and span.name.startswith(FLUSH) is False:
                yield Sample(_length(cold), _length(hot), tuple(s.name for s in cold))
                opened = False
            if span.name.startswith(FLUSH):
                cold, hot, opened = [], [], True
                current = cold
            else:
                current = None
        elif span.name.startswith(MARK):
            current = hot
        elif current is not None:
            current.append(span)
    if opened:
        yield Sample(_length(cold), _length(hot), tuple(s.name for s in cold))


def _length(spans: Sequence[Span]) -> float:
    """From the first kernel's start to the last one's end."""
    return float(max(span.end for span in spans) - min(span.start for span in spans)) if spans else 0.0
