"""The store: one results folder, its current snapshot, and the way to the next."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path

import polars as pl

from dashboard.store.cache import Cache
from dashboard.store.files import scan
from dashboard.store.known import Known, from_cache, step
from dashboard.store.schema import PROBLEMS
from dashboard.store.shown import Shown, show
from dashboard.store.snapshot import Snapshot, assemble, empty_snapshot


class Store:
    """Holds the current snapshot of a results folder. Any thread may read it or ask for a refresh."""

    def __init__(self, results: Path) -> None:
        self.results = results
        self._lock = threading.Lock()
        self._snapshot = empty_snapshot(results)
        self._cache: Cache | None = None
        self._known = Known()
        self._shown: dict[str, Shown] = {}

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot; taking it never waits for a refresh."""
        return self._snapshot

    def refresh(self) -> bool:
        """Read what is new, changed or gone under the results folder; True when the snapshot was replaced.

        When the folder itself has vanished, the last rows stay, beside a problem that says so.
        """
        with self._lock:
            try:
                found = scan(self.results)
            except OSError as error:
                return self._lost(f"cannot be listed, what was read before is shown: {error.strerror}")
            if self._cache is None:
                self._cache = Cache(self.results)
                self._known = from_cache(*self._cache.load())
            after = step(self.results, self._known, found, self._cache.folder)
            if after is None and self._snapshot.version and not self._snapshot.version.endswith(_LOST):
                return False
            self._known = after or self._known
            self._publish()
            self._save(self._cache)
            return True

    def _publish(self) -> None:
        known = self._known
        self._shown = show(known.chunks.values(), self._shown, known.has_rows)
        frames = [(each.measurements, each.latest, each.runs) for each in self._shown.values()]
        copies = {file: copy_of(other) for each in self._shown.values() for file, other in each.doubles.items()}
        stamps = sorted((path, *entry.stamp) for path, entry in known.files.items())
        contents = (stamps, sorted(known.described_stamps.items()), sorted(known.problems.items()))
        self._snapshot = assemble(
            self.results, frames, known.described.machines, {**copies, **known.problems}, contents
        )

    def _save(self, cache: Cache) -> None:
        """Keep what was read for the next start. A cache that cannot be written costs that start time, nothing else."""
        new = [chunk for name, chunk in self._known.chunks.items() if name not in self._known.saved]
        try:
            cache.save(self._known.index, new)
        except OSError as error:
            reason = f"the cache cannot be written, the next start will read every file: {error.strerror}"
            self._snapshot = _with_problem(self._snapshot, str(cache.folder), reason, _UNSAVED)
        else:
            self._known = dataclasses.replace(self._known, saved=frozenset(self._known.chunks))

    def _lost(self, reason: str) -> bool:
        if self._snapshot.version.endswith(_LOST):
            return False
        self._snapshot = _with_problem(self._snapshot, str(self.results), reason, _LOST)
        return True


def copy_of(other: str) -> str:
    """What is said of a file whose record lies in another one too."""
    return f"is a copy of {other}, which is counted; this one is not"


_LOST = "-lost"  # ends the version while the results folder cannot be listed
_UNSAVED = "-unsaved"  # ends the version while the cache cannot be written


def _with_problem(snapshot: Snapshot, file: str, reason: str, mark: str) -> Snapshot:
    row = pl.DataFrame([(file, reason)], schema=PROBLEMS, orient="row")
    problems = pl.concat([row, snapshot.problems])
    return dataclasses.replace(snapshot, problems=problems, version=snapshot.version + mark)


def open_store(results: Path) -> Store:
    """A store over a results folder, read as far as the cache and the files allow. Never raises for bad files."""
    store = Store(results)
    store.refresh()
    return store
