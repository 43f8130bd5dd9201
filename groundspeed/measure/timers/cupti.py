"""The GPU's timer: CUPTI's own records of when each kernel began and ended, through Kineto.

An event pair reads 1.3 µs around nothing and more with every dependent launch; a kernel's own span has neither.
Each sample is a train (see ``train``). Its spin keeps the device busy until the host has issued all of it, so that a
span of several kernels holds no wait for the host.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.autograd import profiler

from groundspeed.measure.timers.base import Run, Sample
from groundspeed.measure.timers.probes import Flush
from groundspeed.measure.timers.train import Span, TimerError, arrange, cut

_ISSUE_NS = 60_000  # the host's time for flush, mark and the profiler's own callbacks, generously
_SLACK = 2.0  # CUPTI's callbacks slow every launch
_MAX_SPIN_NS = 3_000_000
# Before a round's first train. Behind a synchronise the host has no lead yet: without this the first call of a round
# read 8 % more (eager matmul bf16 4096³, whose memset and product were pulled apart: 189 µs for 175).
_PRELUDE_NS = 400_000
_PER_SESSION = 1500  # samples recorded at once: CUPTI drops records when its buffers overflow


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
            chunk = orders[start : start + step]
            try:
                rounds += self._session(runs, chunk, host_ns)
            except TimerError:  # CUPTI drops records now and then; one that does so twice has a cause
                rounds += self._session(runs, chunk, host_ns)
        return rounds

    def _session(
        self, runs: Sequence[Run], orders: Sequence[Sequence[int]], host_ns: Sequence[float]
    ) -> list[list[Sample]]:
        cycles = [int(self._cycles * min(_MAX_SPIN_NS, _ISSUE_NS + 2 * _SLACK * host)) for host in host_ns]
        return arrange(cut(record(lambda: self._issue(runs, orders, cycles))), orders)

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
