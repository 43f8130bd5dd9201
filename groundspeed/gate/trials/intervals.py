"""The exact interval of a share: Clopper and Pearson, 1934."""

from __future__ import annotations

import math
from collections.abc import Callable

_STEPS = 60


def clopper_pearson(hits: int, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """The shares under which ``hits`` or more, and ``hits`` or fewer, would each be seen in (1 - confidence) / 2.

    Raises ValueError where there was nothing to hit.
    """
    if not 0 <= hits <= of or of == 0:
        raise ValueError(f"{hits} of {of} is no share")
    tail = (1 - confidence) / 2
    low = 0.0 if hits == 0 else _root(lambda share: 1 - _at_most(hits - 1, of, share) - tail)
    high = 1.0 if hits == of else _root(lambda share: tail - _at_most(hits, of, share))
    return low, high


def _root(rising: Callable[[float], float]) -> float:
    """Where a rising function of a share crosses zero, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2


def _at_most(hits: int, of: int, share: float) -> float:
    """P(Binomial(of, share) <= hits)."""
    if share <= 0 or share >= 1:
        return float(share <= 0 or hits >= of)
    return math.fsum(math.comb(of, k) * share**k * (1 - share) ** (of - k) for k in range(hits + 1))
