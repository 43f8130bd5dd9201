"""Slow slopes, which methods that look for steps miss or cut into several.

A stretch between two bends (level, ramp, level) is fitted by least squares and weighed against steps, or against no
change at all, by the Bayesian information criterion (Schwarz, 1978): n·ln(residual/n) + parameters·ln n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from groundspeed.analysis.history.levels import Values

SHORTEST_RAMP = 5  # commits: a faster one is a step
DECISIVE = 10.0  # of the criterion: "very strong" from 10 on (Kass and Raftery, JASA 1995)
_BENDS = 24  # places at which a ramp may begin or end, spread over the stretch
_COARSE = 100  # means that a trend is looked for in
_SPIKE = 4.0  # median absolute deviations, as standard deviations


@dataclass(frozen=True)
class Ramp:
    """A slope from index ``begin`` to ``end``, between the levels ``before`` and ``after`` (logarithms)."""

    begin: int
    end: int
    before: float
    after: float


def ramp_instead(logs: Values, points: list[int]) -> Ramp | None:
    """The ramp that explains ``logs`` decisively better than levels that change at ``points``, or None."""
    n = len(logs)
    if n < 2 * SHORTEST_RAMP:
        return None
    calm = without_spikes(logs)
    if not points and not _trends(calm):
        return None
    ramp, residual = _best_ramp(calm)
    pieces = np.split(calm, points)
    stepwise = sum(float(((piece - piece.mean()) ** 2).sum()) for piece in pieces)
    # Levels and where they change, against two levels and two bends.
    advantage = _criterion(stepwise, n, 2 * len(points) + 1) - _criterion(residual, n, 4)
    return ramp if advantage > DECISIVE and ramp.end - ramp.begin >= SHORTEST_RAMP else None


def without_spikes(logs: Values) -> Values:
    """Values far from the median of their seven neighbours replaced by it (Hampel, 1974)."""
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(logs, 3, mode="edge"), 7)
    middle = np.median(windows, axis=1)
    distance = np.abs(logs - middle)
    spread = 1.4826 * float(np.median(distance))
    return np.where(distance > _SPIKE * spread, middle, logs) if spread > 0 else logs


def _trends(logs: Values) -> bool:
    """Whether Kendall's S, the number of rising pairs less that of falling ones, is beyond 4 standard deviations.

    Of means of neighbours where there are many values: a slope over hundreds shows in a hundred as well.
    """
    coarse = np.array([part.mean() for part in np.array_split(logs, _COARSE)]) if len(logs) > _COARSE else logs
    n = len(coarse)
    signs = np.sign(coarse[None, :] - coarse[:, None])
    return abs(float(np.triu(signs, 1).sum())) > 4.0 * math.sqrt(n * (n - 1) * (2 * n + 5) / 18)


def _best_ramp(logs: Values) -> tuple[Ramp, float]:
    n = len(logs)
    bends = np.unique(np.linspace(0, n - 1, _BENDS).round().astype(int))
    begins, ends = np.meshgrid(bends, bends, indexing="ij")
    steep = ends - begins >= SHORTEST_RAMP - 1
    begin, end = begins[steep].astype(float), ends[steep].astype(float)
    rise = np.clip((np.arange(n)[None, :] - begin[:, None]) / (end - begin)[:, None], 0, 1)
    mean_rise, mean = rise.mean(1), float(logs.mean())
    spread = ((rise - mean_rise[:, None]) ** 2).sum(1)
    slope = ((rise - mean_rise[:, None]) * (logs - mean)).sum(1) / np.where(spread > 0, spread, np.inf)
    residuals = ((logs - mean) ** 2).sum() - slope**2 * spread
    best = int(np.argmin(residuals))
    before = mean - slope[best] * mean_rise[best]
    ramp = Ramp(int(begin[best]), int(end[best]), float(before), float(before + slope[best]))
    return ramp, max(float(residuals[best]), 0.0)


def _criterion(residual: float, n: int, parameters: int) -> float:
    return n * math.log(max(residual, 1e-18) / n) + parameters * math.log(n)
