"""Made-up histories whose changes are known, to tune the detection on and to report it with.

Logarithms of a series are the sum of its levels, of Gaussian scatter with a standard deviation of 1 % between commits,
and of what the kind adds:

steady    nothing
steps     none to three steps of 5 %, up or down, at least 15 commits apart
spikes    such steps, and 2 % of the commits 5 to 65 % slower
bimodal   such steps, and 30 % of the commits 3 % slower: a clock with two states
drift     ten steps of 1 % in one direction, two to five commits apart
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from groundspeed.analysis.history.levels import Values

KINDS = ("steady", "steps", "spikes", "bimodal", "drift")
SCATTER = 0.01
STEP = 0.05
APART = 15


@dataclass(frozen=True)
class Truth:
    """A change that was put in: its first and last affected index (the same for a step)."""

    first: int
    last: int


@dataclass(frozen=True)
class Made:
    """A series of positive values ``(n,)`` and what was put into it, in order."""

    kind: str
    values: Values
    truth: tuple[Truth, ...]


def make(kind: str, seed: int, n: int = 200) -> Made:
    """A history of ``n`` commits. The same arguments give the same values. Raises ValueError for an unknown kind."""
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}: expected one of {', '.join(KINDS)}")
    generator = np.random.default_rng([KINDS.index(kind), seed, n])
    logs = SCATTER * generator.standard_normal(n)
    truth: list[Truth] = []
    if kind in ("steps", "spikes", "bimodal"):
        truth = [Truth(point, point) for point in _places(generator, n)]
        for change in truth:
            logs[change.first :] += math.log1p(STEP) * generator.choice((-1, 1))
    if kind == "spikes":
        logs += np.where(generator.random(n) < 0.02, generator.uniform(0.05, 0.5, n), 0.0)
    if kind == "bimodal":
        logs += np.where(generator.random(n) < 0.3, math.log1p(0.03), 0.0)
    if kind == "drift":
        gap = int(generator.integers(2, 6))
        first = int(generator.integers(20, n - 9 * gap - 15))
        for step in range(10):
            logs[first + step * gap :] += math.log1p(0.01)
        truth = [Truth(first, first + 9 * gap)]
    return Made(kind, np.exp(logs), tuple(truth))


def _places(generator: np.random.Generator, n: int) -> list[int]:
    places: list[int] = []
    for _ in range(int(generator.integers(0, 4))):
        free = [at for at in range(10, n - 10) if all(abs(at - other) >= APART for other in places)]
        places.append(int(generator.choice(free)))
    return sorted(places)
