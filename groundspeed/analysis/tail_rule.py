"""Whether head's 99th percentile is worse: it has a slow path that base has not, or all of it became slower.

A p99 of a few hundred samples rests on its two or three largest, so no ratio of p99s can be trusted by itself. Two
kinds of evidence can, from samples that alternated in several processes:

1. A slow path, by counting. Each process's base samples are divided by base's median in it, head's by the larger of
   both medians: where a process happened to run head slower as a whole, that is its clock and no slow path. Head's p99
   over base's lies over the limit; more of head's samples than of base's lie over base's p99 plus half of T, by
   Fisher's exact test; and that holds in more than half of the processes.
2. A slower median, by the rule for medians at the p99's own T: signed-rank and fastest-process vetoes, noise floor.

In both, head's p99 over base's lies over the limit as it is, whatever the medians. Step 1 of the gate suspects on 150
samples a side, step 2 convicts on 1,000 fresh ones: enough for a path taken by 3 % of the calls. ``tail_simulation``
has the error rates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from groundspeed.analysis.rule import CONVICT, SUSPECT, ProcessMedians, conviction, gateable, suspicion
from groundspeed.analysis.stats import FloatArray

TAIL_ROUNDS = 100
SUSPECT_P = 0.25
CONVICT_P = 1e-5
QUANTILE = 0.99


@dataclass(frozen=True, eq=False)
class ProcessSamples:
    """Samples of one process, ns: base's and head's, one value a round."""

    base: FloatArray
    head: FloatArray


@dataclass(frozen=True, eq=False)
class TailComparison:
    """The p99s and what they rest on.

    ratio
        head's p99 over base's, all samples over base's median in their process
    tail_ratio
        the same with head's samples over the larger of both medians: at most ``ratio``
    p
        one-sided: that head has no more slow samples than base
    spread
        share of the processes in which head had more slow samples than base
    medians
        of each process
    """

    ratio: float
    tail_ratio: float
    p: float
    slower_base: int
    slower_head: int
    spread: float
    medians: ProcessMedians

    def suspect(self, threshold: float, floor: float | None = None) -> bool:
        """Whether fresh processes must decide. ``floor`` is the noise floor of the medians, None where unknown."""
        path = self.tail_ratio > 1 + SUSPECT * threshold and self.p <= SUSPECT_P
        return path or (gateable(floor, threshold) and self.may_be_shifted(threshold))

    def convicts(self, threshold: float, floor: float | None = None) -> bool:
        return self.has_slow_path(threshold) or self.is_shifted(threshold, floor)

    def has_slow_path(self, threshold: float) -> bool:
        """By counting, on fresh processes."""
        return self.tail_ratio > 1 + CONVICT * threshold and self.p < CONVICT_P and self.spread > 0.5

    def is_shifted(self, threshold: float, floor: float | None = None) -> bool:
        """By the medians, on fresh processes: head is slower as a whole, and its p99 with it."""
        over = self.ratio > 1 + CONVICT * threshold and gateable(floor, threshold)
        return over and float(conviction(self.medians, threshold)) > 0

    def may_be_shifted(self, threshold: float) -> bool:
        """Step 1's question of the medians, noise floor or not."""
        return self.ratio > 1 + SUSPECT * threshold and float(suspicion(self.medians, threshold)) > 0


def compare_tails(processes: list[ProcessSamples], threshold: float) -> TailComparison:
    """Compare the slow ends of head and base; exchange the sides to ask whether head lost a slow path.

    Raises ``ValueError`` when there is no process or one without samples.
    """
    if not processes or not all(len(each.base) and len(each.head) for each in processes):
        raise ValueError("a tail needs at least one process, each with samples of both sides")
    medians = ProcessMedians(
        np.array([np.median(each.base) for each in processes]), np.array([np.median(each.head) for each in processes])
    )
    larger = np.maximum(medians.base, medians.head)
    bases = [each.base / scale for each, scale in zip(processes, medians.base, strict=True)]
    heads = [each.head / scale for each, scale in zip(processes, larger, strict=True)]
    base_tail = _p99(bases)
    cut = base_tail * (1 + SUSPECT * threshold)
    slow_base = [int((each > cut).sum()) for each in bases]
    slow_head = [int((each > cut).sum()) for each in heads]
    more = [h * len(b) > s * len(a) for h, s, a, b in zip(slow_head, slow_base, heads, bases, strict=True)]
    sizes = sum(map(len, bases)), sum(map(len, heads))
    return TailComparison(
        ratio=_p99([each.head / scale for each, scale in zip(processes, medians.base, strict=True)]) / base_tail,
        tail_ratio=_p99(heads) / base_tail,
        p=fisher_p(sum(slow_base), sizes[0], sum(slow_head), sizes[1]),
        slower_base=sum(slow_base),
        slower_head=sum(slow_head),
        spread=sum(more) / len(more),
        medians=medians,
    )


def fisher_p(base: int, base_size: int, head: int, head_size: int) -> float:
    """The one-sided exact p that ``head`` of ``head_size`` is no larger a share than ``base`` of ``base_size``.

    The hypergeometric tail (Fisher, 1935): given how many of all are slow, the chance that so many fall to head.
    """
    slow, total = base + head, base_size + head_size
    log_all = _log_choose(total, slow)
    terms = (
        math.exp(_log_choose(head_size, k) + _log_choose(base_size, slow - k) - log_all)
        for k in range(head, min(slow, head_size) + 1)
    )
    return min(1.0, math.fsum(terms))


def _p99(samples: list[FloatArray]) -> float:
    return float(np.quantile(np.concatenate(samples), QUANTILE))


def _log_choose(n: int, k: int) -> float:
    if k < 0 or k > n:
        return -math.inf
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
