"""The changes of one series, put together: steps, runs of steps that are one drift, drifts that show no step."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from groundspeed.analysis.history.drift import Ramp, ramp_instead, without_spikes
from groundspeed.analysis.history.levels import RECENT, SHORTEST, Values, change_points, levels

SMALLEST = 0.02  # relative: smaller ones are not worth a person's time
PROVISIONAL = 5  # commits on the new level after which a change no longer moves about
_SETTLED = 40  # commits from the end: what lies earlier is kept when the series grows
_LIKELY = 6.63  # the 99 % quantile of χ² with one degree of freedom


@dataclass(frozen=True)
class Change:
    """One change of level. Indices count the values of the series; levels are medians in the series' unit.

    at
        the first value on the new level; of a drift, where it begins
    after_index, by_index
        the change lies after the value at ``after_index`` and no later than the one at ``by_index``
    provisional
        fewer than ``PROVISIONAL`` values lie behind it: the next commits may move it or take it back
    """

    at: int
    after_index: int
    by_index: int
    before: float
    after: float
    kind: Literal["step", "drift"]
    provisional: bool

    @property
    def ratio(self) -> float:
        """The new level over the old."""
        return self.after / self.before


def find_changes(
    values: Sequence[float] | Values, smallest: float = SMALLEST, known: Sequence[Change] | None = None
) -> tuple[Change, ...]:
    """Changes in positive ``values``, oldest first; fewer than six values have none.

    known
        what was found before the newest values were added: changes more than 40 values from the end are kept, and only
        what lies behind them, 80 values at most, is looked at. A grown series then takes a fraction of the time.

    Raises ValueError for values that are not positive and finite.
    """
    series = np.asarray(values, dtype=np.float64)
    if not bool((np.isfinite(series) & (series > 0)).all()):
        raise ValueError("a history holds positive, finite values only")
    if known is not None and _quiet(series, known, smallest):
        return tuple(_settled(known, len(series), 0))
    kept = [] if known is None else _settled(known, len(series), _SETTLED)
    start = kept[-1].by_index if kept else 0
    if known is not None:
        start = max(start, len(series) - 2 * _SETTLED)
    logs = np.log(series[start:])
    if len(logs) < 2 * SHORTEST:
        return tuple(kept)
    fresh = [_shifted(change, start) for change in _in_logs(logs, smallest)]
    return (*kept, *fresh)


def _settled(known: Sequence[Change], n: int, before: int) -> list[Change]:
    """Those that lie more than ``before`` values from the end."""
    return [replace(one, provisional=n - one.by_index < PROVISIONAL) for one in known if one.by_index < n - before]


def _quiet(series: Values, known: Sequence[Change], smallest: float) -> bool:
    """Whether the newest values stayed on the last level: most series, whenever a commit arrives."""
    start = known[-1].by_index if known else 0
    level = series[start:]
    if len(level) < RECENT or any(change.provisional for change in known):
        return False
    recent = level[-RECENT:]
    windows = np.stack([recent[i : len(recent) - SHORTEST + 1 + i] for i in range(SHORTEST)])
    windows.sort(axis=0)
    middles, usual = windows[SHORTEST // 2], np.partition(level, len(level) // 2)[len(level) // 2]
    return bool((np.abs(np.log(middles / usual)) < math.log1p(smallest)).all())


def _shifted(change: Change, start: int) -> Change:
    return replace(
        change, at=change.at + start, after_index=change.after_index + start, by_index=change.by_index + start
    )


def _in_logs(logs: Values, smallest: float) -> list[Change]:
    points = change_points(logs, smallest)
    found: list[Change] = []
    bounds = [0, *points, len(logs)]
    for run in _runs(logs, points):
        first, last = run[0], run[-1]
        begin, end = bounds[bounds.index(first) - 1], bounds[bounds.index(last) + 1]
        ramp = ramp_instead(logs[begin:end], [p - begin for p in run])
        if ramp is not None:
            found.append(_drift(ramp, begin, len(logs)))
        else:
            found += [_step(logs, points, point) for point in run]
    if not points:
        ramp = ramp_instead(logs, [])
        if ramp is not None and abs(ramp.after - ramp.before) >= math.log1p(smallest):
            found.append(_drift(ramp, 0, len(logs)))
    return found


def _runs(logs: Values, points: list[int]) -> list[list[int]]:
    """Neighbouring points grouped by the direction of their steps: a drift is a run of steps in one direction."""
    heights = levels(logs, points)
    signs = [after > before for before, after in itertools.pairwise(heights)]
    grouped = itertools.groupby(zip(signs, points, strict=True), key=lambda pair: pair[0])
    return [[point for _, point in run] for _, run in grouped]


def _step(logs: Values, points: list[int], point: int) -> Change:
    bounds = [0, *points, len(logs)]
    index = bounds.index(point)
    begin, end = bounds[index - 1], bounds[index + 1]
    first, last = _between(logs[begin:end], point - begin)
    before, after = np.exp(np.median(logs[begin:point])), np.exp(np.median(logs[point:end]))
    provisional = len(logs) - point < PROVISIONAL
    return Change(point, begin + first, begin + last, float(before), float(after), "step", provisional)


def _drift(ramp: Ramp, begin: int, n: int) -> Change:
    at, by = begin + ramp.begin, begin + ramp.end
    before, after = math.exp(ramp.before), math.exp(ramp.after)
    return Change(at, max(at - 1, 0), by, before, after, "drift", n - by < PROVISIONAL)


def _between(logs: Values, point: int) -> tuple[int, int]:
    """The values between which the change lies: positions about as likely as ``point`` (log-likelihood ratio).

    Gives the last value surely on the old level and the first surely on the new one.
    """
    calm = without_spikes(logs)
    n = len(calm)
    sums, squares = np.concatenate(([0.0], np.cumsum(calm))), float((calm**2).sum())
    at = np.arange(1, n)
    residuals = squares - sums[at] ** 2 / at - (sums[n] - sums[at]) ** 2 / (n - at)
    variance = max(float(residuals[point - 1]) / max(n - 2, 1), 1e-18)
    likely = at[residuals - residuals[point - 1] <= _LIKELY * variance]
    # Likely places far off belong to another feature of the stretch, not to this change.
    low = high = point
    present = set(likely.tolist())
    while low - 1 in present:
        low -= 1
    while high + 1 in present:
        high += 1
    return low - 1, high
