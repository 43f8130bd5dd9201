"""Where the level of a series changed.

Kernel change-point detection (Harchaoui and Cappé, 2007; Arlot, Celisse and Harchaoui, JMLR 2019) with a Gaussian
kernel whose bandwidth is the median distance, solved exactly by dynamic programming: a segment costs its length less
its mean similarity, a further segment costs ln n.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

REMEMBERED = 20_000  # series
SHORTEST = 3  # commits in a level: two could be a bad day


@functools.lru_cache(maxsize=REMEMBERED)
def change_points(series: bytes) -> tuple[int, ...]:
    """Indices at which a new level begins, in the bytes of a float64 array; () for fewer than two levels' worth.

    Remembered by the values: after a refresh only the series that grew are looked at again.
    """
    values = np.frombuffer(series, np.float64)
    n = len(values)
    if n < 2 * SHORTEST:
        return ()
    cost = _costs(values)
    penalty = math.log(n)
    best = np.full(n + 1, np.inf)
    best[0] = -penalty
    before = np.zeros(n + 1, dtype=np.int64)
    for end in range(SHORTEST, n + 1):
        starts = np.arange(0, end - SHORTEST + 1)
        totals = best[starts] + cost[starts, end] + penalty
        before[end] = starts[int(np.argmin(totals))]
        best[end] = float(np.min(totals))
    found = []
    end = n
    while before[end] > 0:
        end = int(before[end])
        found.append(end)
    return tuple(found[::-1])


def _costs(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """cost[i, j] of the segment i … j-1, from sums of the kernel matrix over squares on its diagonal."""
    n = len(values)
    squares = (values[:, None] - values[None, :]) ** 2
    middle = float(np.median(squares[np.triu_indices(n, 1)]))
    kernel = np.exp(-squares / middle) if middle > 0 else (squares == 0).astype(np.float64)
    total = np.zeros((n + 1, n + 1))
    total[1:, 1:] = kernel.cumsum(0).cumsum(1)
    diagonal = np.diag(total)
    inner = diagonal[None, :] - total - total.T + diagonal[:, None]
    length = np.arange(n + 1)[None, :] - np.arange(n + 1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(length > 0, length - inner / length, np.inf)
