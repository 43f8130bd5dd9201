"""Timed calls of one rank, each begun when all ranks have come to it.

On a GPU all is issued behind a spin, as ``timers.behind`` does it: an empty cache, a barrier of the GPUs, an event, the
call, an event. The barrier is an all-reduce of one number by NCCL on the same stream: the hosts are not in step, the
streams are. What it leaves of the others' lateness, a few microseconds, is in the reading of whoever comes first; a
call that does nothing says how much of that there is (``floor``). On a CPU the barrier is gloo's and the clock the
host's.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import distributed

from groundspeed.errors import first_line
from groundspeed.measure.calls import call_samples
from groundspeed.measure.timers.base import Run, Sample
from groundspeed.measure.timers.behind import PRELUDE_NS, Blocker, Issued, nothing

_CACHE_BYTES = 64 << 20  # read to empty a CPU's last-level cache


class Trains(Protocol):
    """Timed calls on one kind of device."""

    def calls(self, runs: Sequence[Run], rounds: int) -> list[list[tuple[float, float]]]:
        """(call, host) ns a round of each run."""

    def collect(
        self, runs: Sequence[Run], orders: Sequence[Sequence[int]], spins: Sequence[float]
    ) -> list[list[Sample]]:
        """A sample of each run a round, in the given orders; ``spins`` is the host's lead in ns for each run."""

    def floor(self, rounds: int) -> list[float]:
        """ns that a call reads which does nothing."""

    def kernels(self, run: Run) -> tuple[tuple[str, ...], str]:
        """Names of the kernels of one call, or why there are none. Their spans hold waits for the other ranks."""


def make_trains(device: str) -> Trains:
    """Raises what NCCL or gloo raises when the ranks cannot reach each other."""
    return EventTrains(torch.device("cuda", torch.cuda.current_device())) if device == "cuda" else ClockTrains()


def call_rounds(runs: Sequence[Run], rounds: int, device: str) -> list[list[tuple[float, float]]]:
    """What a call costs the host, until it is issued and until the device is done; begun together."""
    token = torch.zeros(1)
    return call_samples(runs, rounds, device, together=lambda: distributed.all_reduce(token))


class ClockTrains:
    """The host's clock around each call."""

    def __init__(self) -> None:
        self._evict = torch.ones(_CACHE_BYTES // 8, dtype=torch.int64)
        self._together = torch.zeros(1)
        distributed.all_reduce(self._together)  # connects the ranks

    def calls(self, runs: Sequence[Run], rounds: int) -> list[list[tuple[float, float]]]:
        return call_rounds(runs, rounds, "cpu")

    def collect(
        self, runs: Sequence[Run], orders: Sequence[Sequence[int]], spins: Sequence[float]
    ) -> list[list[Sample]]:
        rounds = []
        for order in orders:
            samples = [Sample(0.0, 0.0)] * len(runs)
            for index in order:
                run = runs[index]
                self._evict.sum()
                cold = self._span(run)
                samples[index] = Sample(cold, self._span(run))
            rounds.append(samples)
        return rounds

    def floor(self, rounds: int) -> list[float]:
        return [self._span(nothing) for _ in range(rounds)]

    def kernels(self, run: Run) -> tuple[tuple[str, ...], str]:
        return (), ""

    def _span(self, run: Run) -> float:
        distributed.all_reduce(self._together)
        start = time.perf_counter_ns()
        output = run()
        elapsed = time.perf_counter_ns() - start
        del output  # freeing it must not fall into the interval
        return float(elapsed)


class EventTrains:
    """A pair of events around each call, behind a barrier of the GPUs."""

    def __init__(self, device: torch.device) -> None:
        from groundspeed.measure.timers.probes import Flush

        self._flush = Flush(device)
        self._flush()  # compiles it
        self._blocker = Blocker(device)
        self._token = torch.zeros(1, device=device)
        self._barrier()  # connects the ranks
        torch.cuda.synchronize()

    def calls(self, runs: Sequence[Run], rounds: int) -> list[list[tuple[float, float]]]:
        return call_rounds(runs, rounds, "cuda")

    def collect(
        self, runs: Sequence[Run], orders: Sequence[Sequence[int]], spins: Sequence[float]
    ) -> list[list[Sample]]:
        rounds = []
        for order in orders:
            self._blocker.block(PRELUDE_NS)
            trains = {index: self._issue(runs[index], spins[index]) for index in order}
            # A round at a time: the launch queue is finite, and a full one makes the host wait inside a train.
            torch.cuda.synchronize()
            rounds.append([_sample(trains[index]) for index in sorted(trains)])
        return rounds

    def floor(self, rounds: int) -> list[float]:
        orders = [[0]] * rounds
        return [row[0].cold for row in self.collect([nothing], orders, [PRELUDE_NS])]

    def kernels(self, run: Run) -> tuple[tuple[str, ...], str]:
        from groundspeed.measure.timers.cupti import record

        try:
            return tuple(span.name for span in record(run)), ""
        except RuntimeError as error:  # another profiler has CUPTI, or the driver refuses
            return (), first_line(error)[:200]

    def _barrier(self) -> None:
        distributed.all_reduce(self._token)

    def _issue(self, run: Run, spin_ns: float) -> Issued:
        return self._blocker.issue(spin_ns, self._flush, [run, run], self._barrier)


def _sample(issued: Issued) -> Sample:
    cold, hot = issued.spans()
    return Sample(cold, hot, waited=not issued.ahead)
