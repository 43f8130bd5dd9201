"""Intervals, p-values and q-values: shown beside a verdict; the signed-rank p can also stop a conviction.

A verdict never rests on them alone. That was simulated: it costs power at the few processes a gate can afford, and
with five processes the smallest two-sided p there is, is 1/16.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from groundspeed.analysis.stats import FloatArray, Floats, hodges_lehmann_rows

IntArray = npt.NDArray[np.int64]


def bootstrap_interval(
    x: Floats, confidence: float = 0.99, resamples: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """The percentile bootstrap interval of the Hodges–Lehmann estimate (Efron and Tibshirani, 1993, chapter 13).

    Seeded, so that a report can be reproduced. With few values it is narrower than it claims: it says how much the
    processes disagree, no more.
    """
    values = np.asarray(x, dtype=np.float64)
    random = np.random.default_rng(seed)
    drawn = values[random.integers(0, len(values), (resamples, len(values)))]
    tail = (1 - confidence) / 2
    low, high = np.quantile(hodges_lehmann_rows(drawn), [tail, 1 - tail])
    return float(low), float(high)


def signed_rank_p(x: Floats) -> float:
    """``signed_rank_p_rows`` of one sequence of values."""
    return float(signed_rank_p_rows(np.asarray(x, dtype=np.float64)))


def signed_rank_p_rows(x: FloatArray) -> FloatArray:
    """The exact two-sided p of Wilcoxon's signed-rank test that rows ``(..., n)`` are symmetric about 0; ``(...)``.

    Zeros are dropped and ties share the mean of their ranks; the distribution over all 2^n signs is counted on doubled
    ranks, which are whole numbers (Pratt and Gibbons, 1981, section 3.7). Nothing but zeros gives 1. More than 40
    values use the normal limit with the variance of the ranks that are there.
    """
    n = x.shape[-1]
    values = x.reshape(-1, n)
    doubled = _doubled_signed_ranks(values)
    positive = np.where(values > 0, doubled, 0).sum(axis=-1)
    smaller = np.minimum(positive, doubled.sum(axis=-1) - positive)
    if n > 40:
        return np.array([_normal_p(*row) for row in zip(smaller, doubled, strict=True)]).reshape(x.shape[:-1])
    sums = np.arange(n * (n + 1) + 1)
    counts = np.zeros((len(values), len(sums)))
    counts[:, 0] = 1.0
    for i in range(n):
        before = sums - doubled[:, i, None]
        counts += np.where(before >= 0, np.take_along_axis(counts, np.maximum(before, 0), axis=-1), 0.0)
    # A dropped value has rank zero: it doubles every count, and 2^n with it.
    tail = np.where(sums <= smaller[:, None], counts, 0.0).sum(axis=-1)
    return np.minimum(1.0, 2 * tail / 2.0**n).reshape(x.shape[:-1])


def rank_sum_p(x: Floats, y: Floats) -> float:
    """The two-sided p of the Mann–Whitney test that neither of two independent samples tends to be larger.

    Normal limit with the correction for ties and for continuity (Hollander, Wolfe and Chicken, 2014, section 4.1):
    good from about eight values a side. Values that are all equal give 1.
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    n, m = len(first), len(second)
    ranks = _mean_ranks(np.concatenate([first, second]))
    u = ranks[:n].sum() - n * (n + 1) / 2
    _, ties = np.unique(ranks, return_counts=True)
    total = n + m
    variance = n * m / 12 * (total + 1 - (ties**3 - ties).sum() / (total * (total - 1)))
    if variance <= 0:
        return 1.0
    return _two_sided(max(0.0, abs(u - n * m / 2) - 0.5) / variance**0.5)


def benjamini_hochberg(p: Floats) -> FloatArray:
    """q-values: the false discovery rate at which each p would just be called (Benjamini and Hochberg, 1995)."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values)
    scaled = values[order] * len(values) / np.arange(1, len(values) + 1)
    q = np.empty_like(values)
    q[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return q


def _doubled_signed_ranks(values: FloatArray) -> IntArray:
    """Twice the mean rank of each |value| among those of its row that are not zero, ``(rows, n)``; 0 for a zero."""
    sizes = np.abs(values)
    kept = (sizes > 0)[:, None, :]
    mine, others = sizes[:, :, None], sizes[:, None, :]
    doubled = 2 * (kept & (others < mine)).sum(axis=-1) + (kept & (others == mine)).sum(axis=-1) + 1
    return np.where(sizes > 0, doubled, 0)


def _normal_p(smaller: int, doubled: IntArray) -> float:
    if not doubled.any():
        return 1.0
    distance = max(0.0, doubled.sum() / 2 - smaller - 1)
    return _two_sided(distance / float((doubled**2).sum() / 4) ** 0.5)


def _two_sided(z: float) -> float:
    return math.erfc(z / math.sqrt(2))


def _mean_ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1, ties sharing their mean."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]
