"""How much to plant: from what amounts were seen to add to the amount that adds what is wanted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from groundspeed.analysis.stats import FloatArray
from groundspeed.gate.trials.plant import Kind
from groundspeed.gate.trials.record import Point

CYCLES_PER_NS = 1.9  # of a spin, until it has been measured: an H200 runs its kernels at 1.7 to 2.0 GHz
FIRST_SHARE = 0.06  # planted first, before anything is known
_FIRST_SPIN_NS = 500  # more than the last block can wait without being noticed
_SLOWEST_MEMORY = 3.5e12  # bytes/s: for a first guess at a case's time
_OVERHEAD_NS = 2_000
_APART = 1.5  # the largest amount over the smallest that a line needs


def first_amount(kind: Kind, units: int, traffic: int) -> int:
    """Something near FIRST_SHARE. ``units`` are a case's rows or blocks, ``traffic`` its bytes."""
    if kind is not Kind.SPIN:
        return max(1, round(FIRST_SHARE * units))
    guessed = _OVERHEAD_NS + traffic / _SLOWEST_MEMORY * 1e9
    return round(CYCLES_PER_NS * (_FIRST_SPIN_NS + FIRST_SHARE * guessed))


def amount_for(kind: Kind, wanted_ns: float, points: Sequence[Point], units: int) -> int | None:
    """The amount that adds ``wanted_ns``, by the straight line that fits what was seen; None where none does.

    ``points`` are of one series, and not empty. Where their amounts lie too near each other for a line, a spin is
    taken to add what it waits, and other kinds to add in proportion.
    """
    amounts = np.array([point.amount for point in points], dtype=float)
    effects = np.array([point.effect_ns for point in points])
    slope = _slope(kind, amounts, effects)
    if slope <= 0:
        return None
    found = round(float(amounts.mean() + (wanted_ns - effects.mean()) / slope))
    most = found if kind is Kind.SPIN else units // 2
    return found if 1 <= found <= most else None


def _slope(kind: Kind, amounts: FloatArray, effects: FloatArray) -> float:
    """ns a unit of the amount, by least squares."""
    if kind is Kind.AGAIN:  # nothing done twice adds nothing
        return float((amounts * effects).sum() / (amounts**2).sum())
    if amounts.max() >= _APART * amounts.min():
        return float(np.polyfit(amounts, effects, 1)[0])
    return 1 / CYCLES_PER_NS if kind is Kind.SPIN else float(effects.mean() / amounts.mean())
