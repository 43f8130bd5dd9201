"""Median, 99 % interval and upper percentiles of many short lists of samples at once.

The definitions are those of groundspeed.analysis.stats; tests hold the two together.
"""

from __future__ import annotations

import functools
import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from groundspeed.analysis.stats import median_interval

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Summary:
    """One value a list, NaN where the list is empty (and low and high where it is too short for an interval)."""

    n: npt.NDArray[np.int64]
    median: Floats
    low: Floats
    high: Floats
    p95: Floats
    p99: Floats


class Lists:
    """Lists of samples laid end to end: a file's floats are packed away line by line, while the cache holds them."""

    def __init__(self) -> None:
        self.values = array("d")
        self.lengths = array("q")

    def add(self, samples: list[float]) -> None:
        self.values.fromlist(samples)
        self.lengths.append(len(samples))

    def summarise(self) -> Summary:
        """Summaries of the lists, in the samples' own unit and in the order they were added."""
        values, n = np.frombuffer(self.values, np.float64), np.frombuffer(self.lengths, np.int64)
        starts = np.cumsum(n) - n
        out = np.full((5, len(n)), np.nan)
        for size in np.unique(n[n > 0]):
            (where,) = np.nonzero(n == size)
            out[:, where] = _of_sorted(np.sort(values[starts[where, None] + np.arange(size)], axis=1))
        return Summary(n, *out)

    def median_ratios(self, over: Sequence[int]) -> Floats:
        """Of every list i the median of list ``over[i]`` divided by it, element by element.

        NaN where ``over[i]`` is -1, where the two lists differ in length, where they are empty, and where a median is
        not finite and positive.
        """
        values, n = np.frombuffer(self.values, np.float64), np.frombuffer(self.lengths, np.int64)
        starts, other = np.cumsum(n) - n, np.asarray(over, np.int64)
        out = np.full(len(n), np.nan)
        paired = (other >= 0) & (n > 0)
        paired[paired] = n[other[paired]] == n[paired]
        for size in np.unique(n[paired]):
            (where,) = np.nonzero(paired & (n == size))
            rounds = np.arange(size)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = values[starts[other[where], None] + rounds] / values[starts[where, None] + rounds]
                out[where] = np.median(ratios, axis=1)
        return np.where(np.isfinite(out) & (out > 0), out, np.nan)


def _of_sorted(block: Floats) -> Floats:
    """Median, low, high, p95, p99 of rows sorted ascending."""
    size = block.shape[1]
    rank = _interval_rank(size)
    unknown = np.full(len(block), np.nan)
    return np.stack(
        (
            (block[:, (size - 1) // 2] + block[:, size // 2]) * 0.5,
            unknown if rank is None else block[:, rank],
            unknown if rank is None else block[:, size - 1 - rank],
            _quantile(block, 0.95),
            _quantile(block, 0.99),
        )
    )


@functools.cache
def _interval_rank(size: int) -> int | None:
    """Which order statistic ends the 99 % interval of a median of so many samples; None for too few."""
    low, _ = median_interval(range(size))
    return None if math.isinf(low) else int(low)


def _quantile(block: Floats, q: float) -> Floats:
    """Linear interpolation between order statistics (type 7 of Hyndman and Fan)."""
    position = q * (block.shape[1] - 1)
    below = int(position)
    above = min(below + 1, block.shape[1] - 1)
    return block[:, below] + (block[:, above] - block[:, below]) * (position - below)
