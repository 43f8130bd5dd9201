"""Two sets of stored results, and how sure one can be of what differs.

Stored results come from different processes, hours or machines, so rounds cannot be paired and the interval of one
run's median says nothing of the next run's. What that leaves is said with every comparison:

high
    three runs a side or more, one environment: the spread between runs is in the interval
medium
    fewer runs, one environment, samples on both sides: the spread between runs is unknown
low
    environments or machines differ, a run did not settle, or only single values were kept
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from groundspeed.analysis.rule import Verdict
from groundspeed.analysis.significance import benjamini_hochberg, rank_sum_p
from groundspeed.analysis.stats import FloatArray, median
from groundspeed.analysis.stored import SeriesId, Stored

Certainty = Literal["high", "medium", "low"]

THRESHOLD = 0.05
SIGNIFICANT_Q = 0.01
ENOUGH_RUNS = 3


@dataclass(frozen=True)
class Comparison:
    """One series of A against B.

    ratio, low, high
        B over A (1.03 is 3 % more) and its interval at about 99 %; None where there is none.
    p, q
        Of the Mann-Whitney test on runs (certainty high) or samples, and over all series compared; None without.
    reasons
        What limits the certainty or explains the verdict.
    """

    series: SeriesId
    verdict: Verdict
    certainty: Certainty
    unit: str = ""
    base: float | None = None
    head: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    q: float | None = None
    runs: tuple[int, int] = (0, 0)
    reasons: tuple[str, ...] = ()


def compare(base: Iterable[Stored], head: Iterable[Stored], threshold: float = THRESHOLD) -> list[Comparison]:
    """Compare every series that either side has, in order of their names."""
    groups: dict[SeriesId, tuple[list[Stored], list[Stored]]] = {}
    for side, entries in enumerate((base, head)):
        for entry in entries:
            groups.setdefault(entry.series, ([], []))[side].append(entry)
    measured = [_compare(series, *groups[series]) for series in sorted(groups)]
    tested = [i for i, comparison in enumerate(measured) if comparison.p is not None]
    if tested:
        values = benjamini_hochberg(np.array([measured[i].p for i in tested], dtype=float))
        for i, q in zip(tested, values, strict=True):
            measured[i] = replace(measured[i], q=float(q))
    return [_judged(comparison, threshold) for comparison in measured]


def _compare(series: SeriesId, base: Sequence[Stored], head: Sequence[Stored]) -> Comparison:
    """The numbers, with a verdict only where none are needed for it."""
    runs = len(base), len(head)
    if not base or not head:
        return Comparison(series, Verdict.REMOVED if base else Verdict.NEW, "high", runs=runs)
    bases, heads = ([entry for entry in side if entry.value is not None] for side in (base, head))
    if not bases or not heads:
        return _without_values(series, base, head, bool(bases), bool(heads))
    reason = _incomparable(bases, heads)
    if reason:
        return Comparison(series, Verdict.INCOMPARABLE, "high", runs=runs, reasons=(reason,))
    certainty, reasons = _certainty(bases, heads)
    ratio, low, high, p = _between_runs(bases, heads) if certainty == "high" else _within_runs(bases, heads)
    return Comparison(
        series,
        Verdict.UNCHANGED,
        certainty,
        bases[0].unit,
        _middle(bases),
        _middle(heads),
        ratio,
        low,
        high,
        p,
        runs=(len(bases), len(heads)),
        reasons=tuple(reasons),
    )


def _without_values(
    series: SeriesId, base: Sequence[Stored], head: Sequence[Stored], has_base: bool, has_head: bool
) -> Comparison:
    runs = len(base), len(head)
    if has_base:
        verdict = Verdict.BROKEN if head[-1].status == "failed" else Verdict.REMOVED
        return Comparison(series, verdict, "high", runs=runs, reasons=(head[-1].reason,))
    if has_head:
        verdict = Verdict.FIXED if base[-1].status == "failed" else Verdict.NEW
        return Comparison(series, verdict, "high", runs=runs, reasons=(base[-1].reason,))
    reason = f"no value on either side: {head[-1].reason}"
    return Comparison(series, Verdict.INCOMPARABLE, "high", runs=runs, reasons=(reason,))


def _incomparable(bases: Sequence[Stored], heads: Sequence[Stored]) -> str:
    """Why a ratio would mean nothing, or ""."""
    for what, get in (
        ("the computation (its digest or version)", lambda entry: entry.run.computation),
        ("the timer", lambda entry: entry.timer),
        ("the unit", lambda entry: entry.unit),
    ):
        if len({get(entry) for entry in (*bases, *heads)}) > 1:
            return f"{what} differs"
    return ""


def _certainty(bases: Sequence[Stored], heads: Sequence[Stored]) -> tuple[Certainty, list[str]]:
    reasons = _differences(bases, heads)
    unstable = next((entry.unstable for entry in (*bases, *heads) if entry.unstable), "")
    if unstable:
        reasons.append(f"a run did not settle: {unstable}")
    if min(len(bases), len(heads)) >= ENOUGH_RUNS:
        return ("low" if reasons else "high"), reasons
    if not all(entry.low is not None for entry in (*bases, *heads)):
        return "low", [*reasons, "single values: nothing says how far they scatter"]
    fewest = min(len(bases), len(heads))
    reasons.append(f"{fewest} run{'s' if fewest > 1 else ''} a side: how far runs scatter is unknown")
    return ("low" if len(reasons) > 1 else "medium"), reasons


def _differences(bases: Sequence[Stored], heads: Sequence[Stored]) -> list[str]:
    """What of machine and environment is not the same in all runs."""
    entries = (*bases, *heads)
    found = []
    machines = sorted({entry.run.machine for entry in entries})
    if len(machines) > 1:
        found.append(f"machines differ: {', '.join(machines)}")
    names = {name for entry in entries for name, _ in entry.run.environment}
    for name in sorted(names):
        values = sorted({dict(entry.run.environment).get(name, "") for entry in entries})
        if len(values) > 1:
            found.append(f"{name} differs: {' and '.join(value or '(none)' for value in values)}")
    return found


Numbers = tuple[float | None, float | None, float | None, float | None]


def _between_runs(bases: Sequence[Stored], heads: Sequence[Stored]) -> Numbers:
    """Ratio, interval and p from runs: the shift of Hodges and Lehmann for two samples, bootstrapped over runs."""
    base, head = _logs(bases), _logs(heads)
    if base is None or head is None:
        return _plain_ratio(bases, heads), None, None, None
    random = np.random.default_rng(0)
    drawn_base = base[random.integers(0, len(base), (2000, len(base)))]
    drawn_head = head[random.integers(0, len(head), (2000, len(head)))]
    shifts = np.median((drawn_head[:, :, None] - drawn_base[:, None, :]).reshape(2000, -1), axis=1)
    low, high = np.quantile(shifts, [0.005, 0.995])
    shift = float(np.median(head[:, None] - base[None, :]))
    return math.exp(shift), math.exp(low), math.exp(high), rank_sum_p(base, head)


def _within_runs(bases: Sequence[Stored], heads: Sequence[Stored]) -> Numbers:
    """Ratio of the middle medians, the widest interval that the runs' own allow, and p from their samples."""
    ratio = _plain_ratio(bases, heads)
    samples = [[x for entry in side for x in entry.samples] for side in (bases, heads)]
    p = rank_sum_p(*samples) if all(samples) else None
    ends = [(entry.low, entry.high) for side in (bases, heads) for entry in side]
    if ratio is None or any(low is None or high is None or low <= 0 or math.isinf(high) for low, high in ends):
        return ratio, None, None, p
    lows = [min(entry.low or 0.0 for entry in side) for side in (bases, heads)]
    highs = [max(entry.high or 0.0 for entry in side) for side in (bases, heads)]
    return ratio, lows[1] / highs[0], highs[1] / lows[0], p


def _judged(comparison: Comparison, threshold: float) -> Comparison:
    """With the verdict of a comparison that has numbers: over T and sure, or over T and not, or neither."""
    if comparison.verdict is not Verdict.UNCHANGED:
        return comparison
    ratio = comparison.ratio
    if ratio is None:
        reason = "base is 0" if comparison.base == 0 and comparison.head else "no ratio"
        verdict = Verdict.AMBIGUOUS if comparison.base != comparison.head else Verdict.UNCHANGED
        return replace(comparison, verdict=verdict, reasons=(*comparison.reasons, reason))
    if 1 / (1 + threshold) <= ratio <= 1 + threshold:
        return comparison
    worse = ratio > 1
    apart = comparison.low is not None and comparison.high is not None and not comparison.low <= 1 <= comparison.high
    # Few runs cannot reach a small p however far apart they lie: their interval alone decides.
    significant = comparison.certainty == "high" or comparison.q is None or comparison.q < SIGNIFICANT_Q
    if apart and significant:
        return replace(comparison, verdict=Verdict.REGRESSED if worse else Verdict.IMPROVED)
    reason = "the interval holds 1" if comparison.low is not None else "over the threshold, without an interval"
    return replace(comparison, verdict=Verdict.AMBIGUOUS, reasons=(*comparison.reasons, reason))


def _middle(entries: Sequence[Stored]) -> float:
    return median([entry.value for entry in entries if entry.value is not None])


def _plain_ratio(bases: Sequence[Stored], heads: Sequence[Stored]) -> float | None:
    base, head = _middle(bases), _middle(heads)
    if base == 0:
        return 1.0 if head == 0 else None
    return head / base


def _logs(entries: Sequence[Stored]) -> FloatArray | None:
    values = np.array([entry.value for entry in entries if entry.value is not None], dtype=float)
    return np.log(values) if (values > 0).all() else None
