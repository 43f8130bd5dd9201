"""The GPU's timer where CUPTI cannot be used: a pair of events around each call, behind a blocking kernel.

Its readings are longer than the work: an empty pair reads about a microsecond, and the first kernel's launch lies
inside it. What an empty pair reads is said with every row and subtracted from none, because the rest of the difference
is not known to be the same for every kernel. Events see no kernels, and only the current stream.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import torch

from groundspeed.analysis.stats import median
from groundspeed.measure.timers.base import Fitted, Run, Sample
from groundspeed.measure.timers.behind import PRELUDE_NS, Blocker, Issued, nothing
from groundspeed.measure.timers.probes import Flush

_ISSUE_NS = 60_000  # the host's time for the flush and six events, generously
_SLACK = 2.0
_EMPTY_PAIRS = 31
_WATCHES = 3
_TELLING_NS = 50_000.0  # a synchronisation with nothing to wait for takes less


class EventTimer:
    """Spans between events. ``reason`` is why it stands in for another timer.

    empty_ns
        What a pair with nothing between its events reads here.
    """

    name = "events"
    sees_kernels = False

    def __init__(self, device: torch.device, reason: str = "") -> None:
        self._flush = Flush(device)
        self._blocker = Blocker(device)
        self._reason = reason
        pairs = [self._blocker.timed(_ISSUE_NS, nothing, [nothing])[0][0] for _ in range(_EMPTY_PAIRS)]
        self.empty_ns = median(pairs)

    def fit(self, runs: Mapping[str, Run]) -> Fitted:
        empty = f"an empty pair of events reads {self.empty_ns / 1e3:.2f} µs here; it is in every reading"
        blind = "events see no kernels: whose kernels ran was not checked"
        return Fitted(self, tuple(filter(None, (self._reason, empty, blind))))

    def collect(
        self, runs: Sequence[Run], orders: Sequence[Sequence[int]], host_ns: Sequence[float]
    ) -> list[list[Sample]]:
        bare = runs[:]
        outlived = [_outlived(run) for run in bare]
        spins = [_ISSUE_NS + 2 * _SLACK * host for host in host_ns]
        rounds = []
        for order in orders:
            self._blocker.block(PRELUDE_NS)
            trains = {index: self._issue(runs[index], spins[index]) for index in order}
            # A round at a time: the launch queue is finite, and a full one makes the host wait inside a train.
            torch.cuda.synchronize()
            samples = []
            for index in sorted(trains):
                spans, ahead = trains[index].spans(), trains[index].ahead
                if not ahead:
                    spans, ahead = self._blocker.timed(2 * spins[index], self._flush, [bare[index]] * 2)
                cold, hot = (span + outlived[index] for span in spans)
                samples.append(Sample(cold, hot, astray=outlived[index], waited=not ahead))
            rounds.append(samples)
        return rounds

    def once(self, call: Run) -> Sample:
        spans, ahead = self._blocker.timed(PRELUDE_NS, nothing, [call])
        return Sample(spans[0], spans[0], waited=not ahead)

    def _issue(self, run: Run, spin_ns: float) -> Issued:
        return self._blocker.issue(spin_ns, self._flush, [run, run])


def _outlived(run: Run) -> float:
    """ns by which a call's work on other streams outlives it on the current one; 0 for what a host's clock cannot tell.

    A long wait is believed when it comes again: a host is interrupted now and then.
    """
    waits = []
    for _ in range(_WATCHES):
        torch.cuda.synchronize()
        run()
        done = torch.cuda.Event()
        done.record()
        done.synchronize()
        start = time.perf_counter_ns()
        torch.cuda.synchronize()
        waits.append(float(time.perf_counter_ns() - start))
        if waits[-1] <= _TELLING_NS:
            return 0.0
    return min(waits)
