"""The GPU's timer: CUPTI's own records of when each kernel began and ended, through Kineto.

An event pair reads 1.3 µs around nothing and more with every dependent launch; a kernel's own span has neither.
Each sample is a train (see ``train``). Its spin keeps the device busy until the host has issued all of it, so that a
span of several kernels holds no wait for the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.autograd import profiler

from groundspeed.errors import first_line
from groundspeed.measure.timers.base import Fitted, Run, Sample
from groundspeed.measure.timers.behind import PRELUDE_NS, Blocker
from groundspeed.measure.timers.probes import Flush
from groundspeed.measure.timers.train import FLUSH, MARK, SPIN, Span, TimerError, arrange, cut, length

_ISSUE_NS = 60_000  # the host's time for flush, mark and the profiler's own callbacks, generously
_SLACK = 2.0  # CUPTI's callbacks slow every launch
_MAX_SPIN_NS = 3_000_000
_PER_SESSION = 1500  # samples recorded at once: CUPTI drops records when its buffers overflow
_NO_WORK = (" Sync", "Stream Wait Event")  # names of the host's waits among the device's events


class CuptiTimer:
    """Spans of kernels by CUPTI. One per process: the first use costs seconds, the others milliseconds."""

    name = "cupti"
    sees_kernels = True

    def __init__(self, device: torch.device, flush: Flush | None = None) -> None:
        self._flush = flush or Flush(device)
        self._blocker = Blocker(device)

    def fault(self) -> str | None:
        """Why CUPTI does not record here (another profiler has it, or the driver refuses), or None."""

        def issue() -> None:
            self._blocker.block(0)
            self._flush()
            self._flush.mark()

        seen: list[Span] = []
        for _ in range(2):  # it drops records now and then
            try:
                seen = record(issue)
            except RuntimeError as error:
                return first_line(error)[:200]
            if all(any(name in span.name for span in seen) for name in (SPIN, FLUSH, MARK)):
                return None
        return f"it recorded {len(seen)} of 3 kernels"

    def fit(self, runs: Mapping[str, Run]) -> Fitted:
        return Fitted(self)

    def once(self, call: Run) -> Sample:
        spans = record(call)
        return Sample(length(spans), length(spans), tuple(span.name for span in spans))

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
        spins = [min(_MAX_SPIN_NS, _ISSUE_NS + 2 * _SLACK * host) for host in host_ns]
        return arrange(cut(record(lambda: self._issue(runs, orders, spins))), orders)

    def _issue(self, runs: Sequence[Run], orders: Sequence[Sequence[int]], spins: Sequence[float]) -> None:
        for order in orders:
            self._blocker.block(PRELUDE_NS)
            for index in order:
                run = runs[index]
                self._blocker.block(spins[index])
                self._flush()
                run()
                self._flush.mark()
                run()
            # A round at a time: the launch queue is finite, and a full one makes the host wait inside a train.
            torch.cuda.synchronize()


def record(issue: Callable[[], object]) -> list[Span]:
    """Run something and return what the device did meanwhile, in the order it began."""
    torch.cuda.synchronize()
    with profiler.profile(use_cpu=False, use_device="cuda", use_kineto=True) as session:
        issue()
        torch.cuda.synchronize()
    return _spans(session.kineto_results.events())


def _spans(events: Iterable[Any]) -> list[Span]:
    cuda = torch.autograd.DeviceType.CUDA
    found = [
        Span(
            event.name(),
            event.start_ns(),
            event.start_ns() + event.duration_ns(),
            event.device_resource_id(),
            event.correlation_id(),
        )
        for event in events
        if event.device_type() == cuda and not event.name().endswith(_NO_WORK) and not event.is_user_annotation()
    ]
    return sorted(found, key=lambda span: (span.start, span.end))
