"""Changes of level in the stored history, and which of the worse ones nobody has explained yet.

Stored results never gate a merge (runs hours apart differ by more than their intervals); here they point at commits
worth a look: steps between levels that last three commits and differ by ``SMALLEST`` at least, and drifts.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from dashboard import triage
from dashboard.components.numbers import ABSENT, percent
from dashboard.frames import Frames
from dashboard.store import METRICS, SERIES
from dashboard.store.queries import differing_fields
from dashboard.view import View
from groundspeed.analysis.history import SHORTEST, SMALLEST, Memory
from groundspeed.analysis.history import Change as Found

PORTIONS = 8  # of the operators, looked at one after the other
WINDOW = 200  # commits of a series that are looked at, newest first
OURS = ("groundspeed", "other_processes")  # of an environment's fields: none that an implementation runs in
NAMED = 3  # groups that a tile names
# Over all snapshots that are served: a commit that arrives adds a value to each series and changes none of the others.
_MEMORY = Memory()


@dataclass(frozen=True)
class Change:
    """A change of level of one series. ``worse`` is the relative change, above 0 for the worse in either direction.

    It lies after ``last_good`` and no later than ``by``; ``commit`` is the most likely place, of a drift its beginning.
    ``environment_changed`` names what of the environment differs between the two ("driver, torch").
    """

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
    by: str
    kind: str
    when: datetime | None
    before: float
    after: float
    worse: float
    provisional: bool
    recovered: bool
    implementation_changed: bool
    environment_changed: str


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
    def environment(self) -> str:
        """What changed around the implementation when its own files did not: an event of its own, no regression."""
        if any(change.implementation_changed or not change.environment_changed for change in self.changes):
            return ""
        return self.first.environment_changed

    @property
    def recovered(self) -> bool:
        return all(change.recovered for change in self.changes)


def changes_of(view: View) -> list[Change] | None:
    """Every change of the machine's series in the view's metric, newest first; None while they are looked for."""
    frames, machine, project, metric = view.frames, view.machine, view.project, view.metric.name
    return frames.later(
        ("changes", machine, project, metric),
        lambda: find_changes(frames.of(machine, project), metric, known_environments(frames)),
    )


def prepare(view: View) -> None:
    """Look for the changes now: an export cannot show them later."""
    frames, machine, project, metric = view.frames, view.machine, view.project, view.metric.name
    frames.once(
        ("changes", machine, project, metric),
        lambda: find_changes(frames.of(machine, project), metric, known_environments(frames)),
    )


def known_environments(frames: Frames) -> dict[str, str]:
    """Source of rows -> what its run says of its environment."""

    def make() -> dict[str, str]:
        rows = frames.snapshot.runs.select(pl.col("source", "details").cast(pl.String)).iter_rows()
        shared: dict[str, str] = {}  # few texts, and hundreds of thousands of sources
        return {source: shared.setdefault(details, details) for source, details in rows}

    return frames.once("environments", make)


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
    """Whether somebody should look at a group: worse by our own doing, not recovered, neither muted nor fixed."""
    return (
        group.worse > 0
        and not group.recovered
        and not group.environment
        and triage.state_of(states, group.key) in triage.OPEN
    )


def find_changes(rows: pl.LazyFrame, metric: str, environments: Mapping[str, str]) -> list[Change]:
    """Changes of level in a frame of measurements, newest first; ``environments`` by the rows' source."""
    direction = METRICS[metric].direction
    found: list[Change] = []
    for portion in range(PORTIONS):
        # A series is of one operator. Sorting a million rows at once took some 230 MB, a portion takes its share of it.
        part = rows.filter(pl.col("operator").hash() % PORTIONS == portion)
        for series in _moving(part, metric).partition_by(SERIES, maintain_order=True):
            found += _in_series(series.to_dicts(), metric, direction, environments)
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
        "source",
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


def _in_series(
    rows: list[dict[str, Any]], metric: str, direction: str, environments: Mapping[str, str]
) -> list[Change]:
    newest = rows[-1]["case_digest"]
    first = max((i + 1 for i, row in enumerate(rows) if row["case_digest"] != newest), default=0)
    rows = rows[first:]  # a changed case is another series
    if len(rows) < 2 * SHORTEST:
        return []
    values = np.array([row[metric] for row in rows], dtype=np.float64)
    changes = _MEMORY.changes((*(rows[-1][name] for name in SERIES), newest, metric), values, SMALLEST)
    up = (rows[-1]["direction"] if metric == "value" else direction) == "higher"
    return [_change(rows, one, metric, up, changes[-1].after, environments) for one in changes]


def _change(
    rows: list[dict[str, Any]], found: Found, metric: str, up: bool, final: float, environments: Mapping[str, str]
) -> Change:
    row, last = rows[found.at], rows[max(found.at - 1, 0)]
    first, by = rows[found.after_index], rows[min(found.by_index, len(rows) - 1)]
    worse = _worse(found.before, found.after, up)
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
        last_good=first["commit"] or "",
        by=by["commit"] or "",
        kind=found.kind,
        when=row["commit_time"] or row["started"],
        before=found.before,
        after=found.after,
        worse=worse,
        provisional=found.provisional,
        recovered=worse > 0 and _worse(found.before, final, up) < worse / 2,
        implementation_changed=row["implementation_digest"] != last["implementation_digest"],
        environment_changed=", ".join(_differing(environments, first["source"], by["source"])),
    )


def _differing(environments: Mapping[str, str], one: str, other: str) -> list[str]:
    names = differing_fields(environments.get(one) or "", environments.get(other) or "")
    return [name for name in names if name not in OURS]


def _worse(before: float, after: float, up: bool) -> float:
    """The relative change from ``before``, above 0 for the worse; ``up`` says that larger values are better."""
    return before / after - 1 if up else after / before - 1


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
