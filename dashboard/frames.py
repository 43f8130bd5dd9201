"""What pages derive from one snapshot, made once for all readers and dropped with the snapshot."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Hashable
from datetime import datetime
from typing import Any, TypeVar

import polars as pl

from dashboard.store import METRICS, SERIES, Metric, Snapshot, Store, queries

T = TypeVar("T")


class Frames:
    """A snapshot and the frames made from it. Safe for several threads; every frame is immutable."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._made: dict[Hashable, Any] = {}
        self._making: set[Hashable] = set()
        self.made = 0
        self._lock = threading.Lock()

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value made under ``key``; two threads that ask at once may both make it, and one of the two is kept."""
        with self._lock:
            if key in self._made:
                made: T = self._made[key]
                return made
        value = make()
        with self._lock:
            kept: T = self._made.setdefault(key, value)
        return kept

    @property
    def revision(self) -> str:
        """A word that differs whenever a page over these frames would."""
        return f"{self.snapshot.version} {self.made}"

    def later(self, key: Hashable, make: Callable[[], T]) -> T | None:
        """The value made under ``key``, or None while another thread makes it; ``made`` counts what got ready so."""
        with self._lock:
            if key in self._made:
                ready: T = self._made[key]
                return ready
            if key in self._making:
                return None
            self._making.add(key)
        threading.Thread(target=self._make, args=(key, make), daemon=True, name="groundspeed-later").start()
        return None

    def _make(self, key: Hashable, make: Callable[[], Any]) -> None:
        value = make()
        with self._lock:
            self._made[key] = value
            self.made += 1

    def of(self, machine: str, project: str, operator: str = "", commits: Collection[str] = ()) -> pl.LazyFrame:
        """Every measurement of one machine and one kind of result, all commits and operators unless they are named.

        Name them where that is known, narrow it down, and collect the columns that are needed: the rest may be more
        than fits into memory.
        """
        return self.snapshot.of(machine, project, operator, commits)

    def commits(self, machine: str, project: str) -> tuple[tuple[str, datetime | None], ...]:
        """Commits with their times, newest first; rows outside any commit left out."""

        def make() -> tuple[tuple[str, datetime | None], ...]:
            runs = self.snapshot.runs.filter((pl.col("machine") == machine) & (pl.col("project") == project))
            at = pl.coalesce("commit_time", "started").max().alias("at")
            rows = runs.group_by(pl.col("commit").cast(pl.String)).agg(at).sort("at", descending=True, nulls_last=True)
            return tuple((commit, when) for commit, when in rows.iter_rows() if commit)

        return self.once(("commits", machine, project), make)

    def latest(self, machine: str, project: str) -> pl.DataFrame:
        """The newest row of every series of one machine and project."""

        def make() -> pl.DataFrame:
            return self.snapshot.latest.filter((pl.col("machine") == machine) & (pl.col("project") == project))

        return self.once(("latest", machine, project), make)

    def speedups(self, machine: str, project: str, metric: str, baseline: str) -> pl.DataFrame:
        """The newest rows with baseline_value, speedup and paired: each against the baseline of its own run."""

        def make() -> pl.DataFrame:
            # All runs', not the newest rows': what ran last of a series may be of another hour than its baseline.
            newest = self.latest(machine, project)
            baselines = newest.filter(pl.col("implementation") == baseline)
            usable = baselines.filter(pl.col("status") == "ok", pl.col(metric).is_finite(), pl.col(metric) > 0)
            # Where each series' newest one has a value, older commits' would not be taken, and are not read.
            commits = newest.get_column("commit").unique().to_list() if usable.height == baselines.height else ()
            rows = self.of(machine, project, commits=commits).filter(pl.col("implementation") == baseline)
            needed = dict.fromkeys(
                (*SERIES, "run_id", "commit_time", "started", "status", "direction", "case_digest", metric)
            )
            return queries.speedup(newest, baseline, metric, reference=rows.select(list(needed)).collect())

        return self.once(("speedups", machine, project, metric, baseline), make)

    def choices(self, machine: str, project: str, column: str) -> tuple[str, ...]:
        """The distinct values of a label column, sorted; "" left out."""

        def make() -> tuple[str, ...]:
            values = self.latest(machine, project).get_column(column).cast(pl.String).unique().drop_nulls().to_list()
            return tuple(sorted(value for value in values if value))

        return self.once(("choices", machine, project, column), make)

    def metrics(self, machine: str, project: str) -> tuple[Metric, ...]:
        """The metrics of which there is at least one value."""

        def make() -> tuple[Metric, ...]:
            frame = self.latest(machine, project)
            return tuple(m for m in METRICS.values() if frame.get_column(m.name).null_count() < frame.height)

        return self.once(("metrics", machine, project), make)


class Library:
    """The store's newest snapshot as ``Frames``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._frames = Frames(store.snapshot)

    def current(self) -> Frames:
        """Frames of the newest snapshot; what was made of an older one is dropped."""
        snapshot = self._store.snapshot
        if self._frames.snapshot is not snapshot:
            self._frames = Frames(snapshot)
        return self._frames

    def refresh(self) -> str:
        """Look for new results; a word that differs whenever a page would."""
        self._store.refresh()
        return self.current().revision
