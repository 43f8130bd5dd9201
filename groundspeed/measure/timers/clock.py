"""The CPU's timer: a monotonic clock around each call, the caches emptied by a read for the cold one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import torch

from groundspeed.measure.timers.base import Fitted, Run, Sample

_CACHE_BYTES = 64 << 20  # read to empty the last-level cache: larger than most cores' share of one


class ClockTimer:
    """Wall time of a call that has finished when it returns."""

    name = "clock"
    sees_kernels = False

    def __init__(self) -> None:
        self._evict = torch.ones(_CACHE_BYTES // 8, dtype=torch.int64)

    def fit(self, runs: Mapping[str, Run]) -> Fitted:
        return Fitted(self)

    def collect(
        self, runs: Sequence[Run], orders: Sequence[Sequence[int]], host_ns: Sequence[float]
    ) -> list[list[Sample]]:
        rounds = []
        for order in orders:
            samples = [Sample(0.0, 0.0)] * len(runs)
            for index in order:
                samples[index] = self._sample(runs[index])
            rounds.append(samples)
        return rounds

    def once(self, call: Run) -> Sample:
        span = _span(call)
        return Sample(span, span)

    def _sample(self, run: Run) -> Sample:
        self._evict.sum()
        cold = _span(run)
        return Sample(cold, _span(run))


def _span(run: Run) -> float:
    start = time.perf_counter_ns()
    output = run()
    elapsed = time.perf_counter_ns() - start
    del output  # freeing it must not fall into the interval
    return float(elapsed)
