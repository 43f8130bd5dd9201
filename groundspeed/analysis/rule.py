"""The gate's rule: is head slower than base, judged from processes that ran both.

Each process gives two medians, base's and head's, of rounds that alternated in it; what differs between processes
(clocks, memory placement) falls out of their ratio. Five processes make a suspect, ten fresh ones convict:

1. the Hodges–Lehmann estimate of the processes' log-ratios lies over 0.5 T: suspect;
2. in fresh processes it lies over 0.7 T, the ratio of the smallest process medians over 0.3 T, and the signed-rank p
   of their log-ratios is at most 0.05: regressed.

The second and third condition of step 2 are vetoes. A clock with two modes can shift the typical process of one side,
but it seldom keeps all of them out of the fast mode. Where processes scatter by more than T, the estimate of ten is
often over 0.7 T on identical code, but they seldom agree on the side: processes that disagree convict nobody.
Comparing the estimate with T itself would catch a change of exactly T half of
the time, whatever the budget. Improvements are the same rule with base and head exchanged. ``simulation`` has the
error rates of this rule under eight kinds of noise.

Ratios are kept as logarithms, so that a change and its reverse are the same distance from zero.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from groundspeed.analysis.significance import bootstrap_interval, signed_rank_p, signed_rank_p_rows
from groundspeed.analysis.stats import FloatArray, hodges_lehmann_rows

PROCESSES = 5
FRESH_PROCESSES = 10
ROUNDS = 30
SUSPECT = 0.5
CONVICT = 0.7
VETO = 0.3
DISAGREE_P = 0.05
LEAST_FRESH = 6  # five processes cannot reach a p of 0.05: nothing could ever be convicted
FLOOR_QUANTILE = 0.998
NOISE_PROCESSES = 10


class Verdict(enum.StrEnum):
    """What a comparison comes to, in the words of every report."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    AMBIGUOUS = "ambiguous"
    INCOMPARABLE = "incomparable"
    NEW = "new"
    REMOVED = "removed"
    BROKEN = "broken"
    FIXED = "fixed"


@dataclass(frozen=True, eq=False)
class ProcessMedians:
    """Base's and head's median of each process, ns; arrays ``(..., processes)``, positive, of one shape."""

    base: FloatArray
    head: FloatArray

    def __post_init__(self) -> None:
        if self.base.shape != self.head.shape or not self.base.shape or not self.base.shape[-1]:
            raise ValueError(f"process medians of shapes {self.base.shape} and {self.head.shape} cannot be paired")
        if not ((self.base > 0).all() and (self.head > 0).all()):
            raise ValueError("process medians must be positive")

    @property
    def count(self) -> int:
        return self.base.shape[-1]

    @property
    def log_ratios(self) -> FloatArray:
        """ln(head / base) of each process: above 0, head is slower."""
        return np.log(self.head) - np.log(self.base)

    @property
    def shift(self) -> FloatArray:
        """The Hodges–Lehmann estimate of the log-ratio, ``(...)``."""
        return hodges_lehmann_rows(self.log_ratios)

    @property
    def fastest_shift(self) -> FloatArray:
        """The log-ratio of the smallest process medians, ``(...)``: what is left when both sides are at their best."""
        return np.log(self.head.min(axis=-1)) - np.log(self.base.min(axis=-1))


@dataclass(frozen=True)
class Judgement:
    """A verdict with its evidence.

    ratio, low, high
        head over base (1.03 is 3 % slower) and its bootstrap interval over the deciding processes
    p
        of the exact two-sided signed-rank test that the processes' log-ratios lie about zero
    processes
        how many the verdict rests on
    scattered
        ambiguous because the processes disagree: a noise floor or more processes can settle it
    """

    verdict: Verdict
    ratio: float
    low: float
    high: float
    p: float
    processes: int
    reason: str = ""
    scattered: bool = False


def suspicion(medians: ProcessMedians, threshold: float) -> FloatArray:
    """Step 1: +1 where head may be slower, -1 where it may be faster, else 0; ``(...)``. ``threshold`` is T."""
    return _beyond(medians.shift, SUSPECT * threshold)


def conviction(fresh: ProcessMedians, threshold: float) -> FloatArray:
    """Step 2, on processes that were not part of step 1: +1 regressed, -1 improved, else 0; ``(...)``."""
    shift = _beyond(fresh.shift, CONVICT * threshold)
    spared = (shift != _beyond(fresh.fastest_shift, VETO * threshold)) | ~agree(fresh)
    return np.where(spared, 0.0, shift)


def agree(fresh: ProcessMedians) -> npt.NDArray[np.bool_]:
    """Whether the processes agree that the sides differ: their signed-rank p is at most 0.05; ``(...)``."""
    return signed_rank_p_rows(fresh.log_ratios) <= DISAGREE_P


def gateable(floor: float | None, threshold: float) -> bool:
    """Whether a series whose A/A comparisons reach ``floor`` (its 99.8 % quantile of |log-ratio|) can be judged at T.

    An unknown floor (None) is taken to allow it: the rule itself keeps false alarms out in the simulated noise of a-g,
    and convicts 1 to 2 % of identical code where processes scatter by more than T (h).
    """
    return floor is None or floor <= math.log1p(CONVICT * threshold)


def noise_floor(log_ratios: FloatArray, processes: int = PROCESSES, resamples: int = 20_000, seed: int = 0) -> float:
    """The 99.8 % quantile of |Hodges–Lehmann| that A/A comparisons of ``processes`` processes would reach.

    ``log_ratios`` are of A/A processes. Comparisons are drawn from them with replacement, each value with either sign
    (which side is called base is arbitrary); the draw is seeded. Raises ``ValueError`` for fewer than NOISE_PROCESSES:
    a handful of processes that happen to agree would declare any series quiet.
    """
    if len(log_ratios) < NOISE_PROCESSES:
        raise ValueError(f"{len(log_ratios)} A/A processes, a noise floor needs at least {NOISE_PROCESSES}")
    random = np.random.default_rng(seed)
    drawn = log_ratios[random.integers(0, len(log_ratios), (resamples, processes))]
    drawn = drawn * random.choice([-1.0, 1.0], drawn.shape)
    return float(np.quantile(np.abs(hodges_lehmann_rows(drawn)), FLOOR_QUANTILE))


def needs_fresh(first: ProcessMedians, threshold: float, floor: float | None = None) -> bool:
    """Whether step 2 is to be run: a suspect in either direction, of a series that can be judged."""
    return gateable(floor, threshold) and bool(suspicion(first, threshold))


def judge(
    first: ProcessMedians, fresh: ProcessMedians | None, threshold: float, floor: float | None = None
) -> Judgement:
    """The verdict of one series, ``(processes,)`` arrays. ``fresh`` holds step 2 where ``needs_fresh`` said so.

    Ambiguous, with the reason, where the series is not gateable and looks changed, where a veto saved it, and where the
    fresh processes stay between the two limits. Raises ``ValueError`` when a suspect comes without fresh processes.
    """
    if not suspicion(first, threshold):
        return _judgement(Verdict.UNCHANGED, first)
    if not gateable(floor, threshold):
        return _judgement(Verdict.AMBIGUOUS, first, f"not gateable: noise floor {floor:.2%} is over 0.7 T")
    if fresh is None:
        raise ValueError("a suspect is judged on fresh processes, none were given")
    convicted = float(conviction(fresh, threshold))
    if convicted:
        return _judgement(Verdict.REGRESSED if convicted > 0 else Verdict.IMPROVED, fresh)
    if _beyond(fresh.shift, CONVICT * threshold):
        if not agree(fresh):
            return _scattered(fresh)
        reason = f"the fastest processes differ by {math.expm1(float(fresh.fastest_shift)):+.2%} only: a bimodal clock?"
        return _judgement(Verdict.AMBIGUOUS, fresh, reason)
    if suspicion(fresh, threshold):
        return _judgement(Verdict.AMBIGUOUS, fresh, "between 0.5 T and 0.7 T in fresh processes")
    return _judgement(Verdict.UNCHANGED, fresh, "suspected, not confirmed in fresh processes")


def _scattered(fresh: ProcessMedians) -> Judgement:
    found = _judgement(Verdict.AMBIGUOUS, fresh)
    interval = f"{found.low - 1:+.1%} to {found.high - 1:+.1%}"
    reason = f"the fresh processes disagree: {interval}, signed-rank p={found.p:.2g} is over {DISAGREE_P:g}"
    return replace(found, reason=reason, scattered=True)


def _judgement(verdict: Verdict, medians: ProcessMedians, reason: str = "") -> Judgement:
    low, high = bootstrap_interval(medians.log_ratios)
    p = signed_rank_p(medians.log_ratios)
    ratio = math.exp(float(medians.shift))
    return Judgement(verdict, ratio, math.exp(low), math.exp(high), p, medians.count, reason)


def _beyond(shift: FloatArray, limit: float) -> FloatArray:
    """+1 above ``log(1 + limit)``, -1 below its negative, else 0."""
    edge = math.log1p(limit)
    return np.where(shift > edge, 1.0, np.where(shift < -edge, -1.0, 0.0))
