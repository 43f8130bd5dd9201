"""Changes of level in the stored history, and which of the worse ones nobody has explained yet.

Stored results never gate a merge (runs hours apart differ by more than their intervals); here they point at commits
worth a look. A change is told when both levels last three commits and differ by ``SMALLEST`` at least.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from dashboard import triage
from dashboard.changepoints import SHORTEST, change_points
from dashboard.components.numbers import ABSENT, percent
from dashboard.store import METRICS, SERIES
from dashboard.view import View

SMALLEST = 0.02
PORTIONS = 8  # of the operators, looked at one after the other
WINDOW = 200  # commits of a series that are looked at, newest first
NAMED = 3  # groups that a tile names
PROVISIONAL = 5  # commits after which a change point no longer moves about


@dataclass(frozen=True)
class Change:
    """A change of level of one series. ``worse`` is the relative change, above 0 for the worse in either direction."""

    machine: str
    environment: str
    operator: str
    implementation: str
    dtype: str
    shape: str
    metric: str
    unit: str
    commit: str
    last_good: str
    when: datetime | None
    before: float
    after: float
    worse: float
    provisional: bool
    recovered: bool
    implementation_changed: bool


@dataclass(frozen=True)
class Group:
    """The changes of one implementation at one commit: what a person looks into and decides about as one thing.

    ``key`` is what triage refers to: the series but for their cases, the metric, and the first commit of the new level.
    """

    key: str
    changes: tuple[Change, ...]

    @property
    def first(self) -> Change:
        return self.changes[0]

    @property
    def label(self) -> str:
        return " ".join(
            part for part in (self.first.operator, self.first.implementation or self.first.environment) if part
        )

    @property
    def worse(self) -> float:
        """Geometric mean of the changes, above 0 for the worse."""
        return math.exp(sum(math.log1p(change.worse) for change in self.changes) / len(self.changes)) - 1

    @property
    def provisional(self) -> bool:
        return any(change.provisional for change in self.changes)

    @property
    def recovered(self) -> bool:
        return all(change.recovered for change in self.changes)


def changes_of(view: View) -> list[Change] | None:
    """Every change of the machine's series in the view's metric, newest first; None while they are looked for."""
    frames, machine, project, metric = view.frames, view.machine, view.project, view.metric.name
    return frames.later(
        ("changes", machine, project, metric), lambda: find_changes(frames.of(machine, project), metric)
    )


def prepare(view: View) -> None:
    """Look for the changes now: an export cannot show them later."""
    frames, machine, project, metric = view.frames, view.machine, view.project, view.metric.name
    frames.once(("changes", machine, project, metric), lambda: find_changes(frames.of(machine, project), metric))


def groups_of(view: View) -> list[Group] | None:
    """The changes of the view's metric and dtype by implementation and commit, newest first; None: not known yet."""
    found = changes_of(view)
    if found is None:
        return None
    return grouped([change for change in found if not view.dtype or change.dtype == view.dtype])


def grouped(found: Sequence[Change]) -> list[Group]:
    """Changes by machine, implementation, metric, commit and direction, in the order of their first ones."""
    groups: dict[str, list[Change]] = {}
    for change in found:
        groups.setdefault(_key(change), []).append(change)
    return [Group(key, tuple(changes)) for key, changes in groups.items()]


def open_regressions(view: View, operator: str = "") -> list[Group] | None:
    """Groups for the worse that still hold and whose triage state is open; None while changes are looked for."""
    groups = groups_of(view)
    if groups is None:
        return None
    states = triage.current(view.frames.snapshot.results)
    return [g for g in groups if is_open(g, states) and operator in ("", g.first.operator)]


def told(view: View, name: Callable[[Group], str], operator: str = "") -> tuple[str, str, bool]:
    """The open regressions for a tile: how many, the first of them in words, and whether there are any."""
    groups = open_regressions(view, operator)
    if groups is None:
        return "…", "being looked for", False
    if groups:
        words = "; ".join(f"{name(g)} {percent(g.worse, signed=True)}" for g in groups[:NAMED])
        return str(len(groups)), words, True
    commits = _commits(view, operator)
    if commits < 2 * SHORTEST:
        return ABSENT, f"too few commits to tell: {commits} of the {2 * SHORTEST} that it takes", False
    return "0", "none known", False


def _commits(view: View, operator: str) -> int:
    """How many commits an operator has on the machine, or the one of all operators that has the most."""
    runs = view.frames.snapshot.runs.filter(
        (pl.col("machine") == view.machine) & (pl.col("project") == view.project) & (pl.col("commit") != "")
    )
    if operator and view.ours:  # a file of a foreign project holds many benchmarks and names none
        runs = runs.filter(pl.col("operator") == operator)
    counts = runs.group_by("operator").agg(pl.col("commit").n_unique()).get_column("commit")
    return max(counts.to_list(), default=0)


def is_open(group: Group, states: Mapping[str, triage.Event]) -> bool:
    """Whether somebody should look at a group: worse, not recovered, neither muted nor fixed."""
    return group.worse > 0 and not group.recovered and triage.state_of(states, group.key) in triage.OPEN


def find_changes(rows: pl.LazyFrame, metric: str) -> list[Change]:
    """Changes of level in a frame of measurements, newest first."""
    direction = METRICS[metric].direction
    found: list[Change] = []
    for portion in range(PORTIONS):
        # A series is of one operator. Sorting a million rows at once took some 230 MB, a portion takes its share of it.
        part = rows.filter(pl.col("operator").hash() % PORTIONS == portion)
        for series in _moving(part, metric).partition_by(SERIES, maintain_order=True):
            found += _in_series(series.to_dicts(), metric, direction)
    return sorted(found, key=lambda change: (change.when is not None, change.when, abs(change.worse)), reverse=True)


def _moving(rows: pl.LazyFrame, metric: str) -> pl.DataFrame:
    """Values of the series long enough to have two levels and whose middle values differ enough to be worth a look."""
    columns = [
        *SERIES,
        "case_digest",
        "implementation_digest",
        "commit",
        "commit_time",
        "started",
        "unit",
        "direction",
        metric,
    ]
    at = pl.coalesce("commit_time", "started")
    ordered = (
        rows.select(columns)
        .filter(pl.col(metric).is_finite() & (pl.col(metric) > 0))
        .with_columns(at.alias("at"))
        .sort("at", "started")
        .unique([*SERIES, "commit"], keep="last", maintain_order=True)
        .group_by(SERIES, maintain_order=True)
        .tail(WINDOW)
        .filter(pl.len().over(SERIES) >= 2 * SHORTEST)
    )
    smooth = pl.col(metric).rolling_median(SHORTEST).over(SERIES)
    return (
        ordered.with_columns(smooth.alias("smooth"))
        .filter(pl.col("smooth").max().over(SERIES) > (1 + SMALLEST) * pl.col("smooth").min().over(SERIES))
        .collect()
    )


def _in_series(rows: list[dict[str, Any]], metric: str, direction: str) -> list[Change]:
    newest = rows[-1]["case_digest"]
    first = max((i + 1 for i, row in enumerate(rows) if row["case_digest"] != newest), default=0)
    rows = rows[first:]  # a changed case is another series
    if len(rows) < 2 * SHORTEST:
        return []
    values = np.array([row[metric] for row in rows], dtype=np.float64)
    points = [0, *change_points(np.log(values).tobytes()), len(rows)]
    levels = [float(np.median(values[a:b])) for a, b in itertools.pairwise(points)]
    up = (rows[-1]["direction"] if metric == "value" else direction) == "higher"
    found = []
    for index, at in enumerate(points[1:-1]):
        before, after = levels[index], levels[index + 1]
        worse = before / after - 1 if up else after / before - 1
        final = levels[-1]
        recovered = worse > 0 and (before / final - 1 if up else final / before - 1) < worse / 2
        if max(before / after, after / before) - 1 >= SMALLEST:
            found.append(_change(rows, at, metric, before, after, worse, recovered))
    return found


def _change(
    rows: list[dict[str, Any]], at: int, metric: str, before: float, after: float, worse: float, recovered: bool
) -> Change:
    row, last = rows[at], rows[at - 1]
    return Change(
        machine=row["machine"],
        environment=row["environment"] or "",
        operator=row["operator"],
        implementation=row["implementation"] or "",
        dtype=row["dtype"] or "",
        shape=row["shape"] or "",
        metric=metric,
        unit=row["unit"] or "" if metric == "value" else METRICS[metric].unit,
        commit=row["commit"] or "",
        last_good=last["commit"] or "",
        when=row["commit_time"] or row["started"],
        before=before,
        after=after,
        worse=worse,
        provisional=len(rows) - at < PROVISIONAL,
        recovered=recovered,
        implementation_changed=row["implementation_digest"] != last["implementation_digest"],
    )


def _key(change: Change) -> str:
    parts = (
        change.machine,
        change.environment,
        change.operator,
        change.implementation,
        change.metric,
        change.commit,
        "worse" if change.worse > 0 else "better",
    )
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]
