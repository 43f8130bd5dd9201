"""Whether head has a slow path that base has not: the 99th percentile, judged by counting.

A p99 of a few hundred samples rests on its two or three largest, so no ratio of p99s can be trusted by itself. The rule
asks three things of samples that alternated in several processes, each divided by base's median in its process:

1. head's p99 over base's lies over the limit;
2. more of head's samples than of base's lie over base's p99 plus half of T, by Fisher's exact test;
3. that holds in more than half of the processes (step 2 only): one process in a slow mode is no slow path.

Step 1 of the gate suspects on 150 samples a side, step 2 convicts on 1,000 fresh ones: enough for a path taken by 3 %
of the calls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from groundspeed.analysis.rule import CONVICT, SUSPECT
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


@dataclass(frozen=True)
class TailComparison:
    """The p99s and the counts they rest on. ``p`` is one-sided: that head has no more slow samples than base."""

    ratio: float  # head's p99 over base's
    p: float
    slower_base: int
    slower_head: int
    spread: float  # share of processes in which head had more slow samples than base

    def suspect(self, threshold: float) -> bool:
        return self.ratio > 1 + SUSPECT * threshold and self.p <= SUSPECT_P

    def convicts(self, threshold: float) -> bool:
        return self.ratio > 1 + CONVICT * threshold and self.p < CONVICT_P and self.spread > 0.5


def compare_tails(processes: list[ProcessSamples], threshold: float) -> TailComparison:
    """Compare the slow ends of head and base; exchange the sides to ask whether head lost a slow path.

    Raises ``ValueError`` when there is no process or one without samples.
    """
    if not processes or not all(len(each.base) and len(each.head) for each in processes):
        raise ValueError("a tail needs at least one process, each with samples of both sides")
    scales = [float(np.median(each.base)) for each in processes]
    bases = [each.base / scale for each, scale in zip(processes, scales, strict=True)]
    heads = [each.head / scale for each, scale in zip(processes, scales, strict=True)]
    base_tail = float(np.quantile(np.concatenate(bases), QUANTILE))
    head_tail = float(np.quantile(np.concatenate(heads), QUANTILE))
    cut = base_tail * (1 + SUSPECT * threshold)
    slow_base = [int((each > cut).sum()) for each in bases]
    slow_head = [int((each > cut).sum()) for each in heads]
    more = [h * len(b) > s * len(a) for h, s, a, b in zip(slow_head, slow_base, heads, bases, strict=True)]
    sizes = sum(map(len, bases)), sum(map(len, heads))
    p = fisher_p(sum(slow_base), sizes[0], sum(slow_head), sizes[1])
    return TailComparison(head_tail / base_tail, p, sum(slow_base), sum(slow_head), sum(more) / len(more))


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


def _log_choose(n: int, k: int) -> float:
    if k < 0 or k > n:
        return -math.inf
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
