"""Indices at which a series settles on another level.

Kernel change-point detection (Harchaoui and Cappé, 2007; Arlot, Celisse and Harchaoui, JMLR 2019) with a Gaussian
kernel whose bandwidth is the median distance and a penalty of ln n for a further level, solved exactly by ``ruptures``.
The kernel saturates: an outlier, however far, counts as one point.
"""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

SHORTEST = 3  # commits in a level: two could be a bad day
# The last level is looked at again among its last commits alone. Over all of a long series five commits on a new level
# barely pay the penalty, which grows with n; among 20 they do. Chosen on the seeds of trial.TUNING: with 32 a step is
# named a commit later, with 16 false alarms set in.
RECENT = 20
_PAIRED = 128  # values of which all distances are made


def change_points(logs: Values, smallest: float) -> list[int]:
    """Where new levels begin in logarithms ``(n,)``; neighbouring levels differ by the factor 1 + ``smallest``."""
    found = _detect(logs)
    last = found[-1] if found else 0
    recent = max(last, len(logs) - RECENT)
    found += [recent + point for point in _detect(logs[recent:]) if recent + point - last >= SHORTEST]
    return distinct(logs, found, smallest)


def levels(logs: Values, points: list[int]) -> list[float]:
    """The median between each pair of neighbouring points, the ends included."""
    return [float(np.median(logs[a:b])) for a, b in itertools.pairwise([0, *points, len(logs)])]


def distinct(logs: Values, points: list[int], smallest: float) -> list[int]:
    """``points`` without those whose step is too small, the smallest taken away first: its neighbours then change."""
    points = list(points)
    while points:
        steps = [abs(after - before) for before, after in itertools.pairwise(levels(logs, points))]
        least = min(range(len(steps)), key=steps.__getitem__)
        if steps[least] >= math.log1p(smallest):
            break
        del points[least]
    return points


def _detect(logs: Values) -> list[int]:
    import ruptures

    n = len(logs)
    if n < 2 * SHORTEST or float(np.ptp(logs)) == 0.0:
        return []
    search = ruptures.KernelCPD(kernel="rbf", min_size=SHORTEST, params={"gamma": _gamma(logs)})
    return [int(point) for point in search.fit(logs[:, None]).predict(pen=math.log(n))[:-1]]


def _gamma(logs: Values) -> float:
    """One over the median squared distance of two values: the usual bandwidth.

    Where half the pairs are equal, as with byte counts, the least distance serves: different values are then far apart.
    """
    ordered = np.sort(logs)
    median = _median_distance(ordered) if len(ordered) <= _PAIRED else _bisected_distance(ordered)
    if median == 0.0:
        steps = np.diff(ordered)
        median = float(steps[steps > 0].min())
    return 1.0 / median**2


def _median_distance(ordered: Values) -> float:
    """Of sorted values the median distance of two, the lower middle one of an odd number of pairs plus one."""
    first, second = _pairs(len(ordered))
    distances = ordered[second] - ordered[first]
    half = len(distances) // 2
    return float(np.partition(distances, half)[half])


@functools.lru_cache(maxsize=_PAIRED)
def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The indices of each two of ``n`` values: a hundred series that grow ask for those of one n."""
    return np.triu_indices(n, 1)


def _bisected_distance(ordered: Values) -> float:
    """The same for many values, without a pair of each two: pairs within a distance are counted by a search."""
    half = len(ordered) * (len(ordered) - 1) // 4
    low, high = 0.0, float(ordered[-1] - ordered[0])
    ranks = np.arange(1, len(ordered) + 1)
    for _ in range(40):
        middle = (low + high) / 2
        within = int((np.searchsorted(ordered, ordered + middle, side="right") - ranks).sum())
        low, high = (low, middle) if within > half else (middle, high)
    return high if low > 0.0 else 0.0
