"""The rule for what a process yields once and repeats: peak memory, error. No statistics: it must hold in each."""

from __future__ import annotations

import numpy as np

from groundspeed.analysis.rule import Judgement, Verdict
from groundspeed.analysis.stats import FloatArray


def judge_exact(base: FloatArray, head: FloatArray, threshold: float, slack: float) -> Judgement:
    """Regressed where head is over ``base * (1 + threshold) + slack`` in every process, improved the other way round.

    Arrays ``(processes,)`` of one shape, not negative. Ambiguous where it holds in some processes only. The ratio is of
    the medians, with the smallest and the largest process ratio beside it; over a base of 0 it is infinite, and 1 where
    head is 0 too.
    """
    if base.shape != head.shape or base.ndim != 1 or not len(base):
        raise ValueError(f"values of shapes {base.shape} and {head.shape} cannot be paired")
    worse = head > base * (1 + threshold) + slack
    better = base > head * (1 + threshold) + slack
    verdict, reason = Verdict.UNCHANGED, ""
    if worse.all():
        verdict = Verdict.REGRESSED
    elif better.all():
        verdict = Verdict.IMPROVED
    elif worse.any() or better.any():
        verdict = Verdict.AMBIGUOUS
        reason = f"worse in {int(worse.sum())} and better in {int(better.sum())} of {len(base)} processes"
    ratios = [_ratio(*pair) for pair in zip(base, head, strict=True)]
    middle = _ratio(float(np.median(base)), float(np.median(head)))
    return Judgement(verdict, middle, min(ratios), max(ratios), 1.0, len(base), reason)


def _ratio(base: float, head: float) -> float:
    if base == 0:
        return 1.0 if head == 0 else float("inf")
    return float(head / base)
