"""The store: one results folder, its current snapshot, and the way to the next."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
from pathlib import Path

import polars as pl

from dashboard.store.cache import Cache
from dashboard.store.files import Scanner
from dashboard.store.known import Known, from_cache, step
from dashboard.store.schema import PROBLEMS
from dashboard.store.shown import Shown, show
from dashboard.store.snapshot import Snapshot, assemble, empty_snapshot

_MANY_FOLDERS = 1_000  # listed and not kept in the cache


class Store:
    """Holds the current snapshot of a results folder. Any thread may read it or ask for a refresh."""

    def __init__(self, results: Path) -> None:
        self.results = results
        self._lock = threading.Lock()
        self._snapshot = empty_snapshot(results)
        self._cache: Cache | None = None
        self._known = Known()
        self._shown: dict[str, Shown] = {}
        self._scanner = Scanner(results)
        self._listed = 0  # folders that the cache knows to be listed

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot. Taking it waits for a refresh only where another process has replaced the cache."""
        if not self._snapshot.intact():
            self.refresh()
        return self._snapshot

    def refresh(self) -> bool:
        """Read what is new, changed or gone under the results folder; True when the snapshot was replaced.

        When the folder itself has vanished, the last rows stay, beside a problem that says so.
        """
        with self._lock:
            opened = self._cache is None or not self._snapshot.intact()
            try:
                if opened:
                    self._open()
                found = self._scanner.scan(self._known.files)
            except OSError as error:
                return self._lost(f"cannot be listed, what was read before is shown: {error.strerror}")
            assert self._cache is not None
            self._keep_listed(self._cache)
            after = step(self.results, self._known, found, self._cache.folder)
            if after is None and not opened and not self._snapshot.version.endswith(_LOST):
                return False
            many = after is not None and not after.complete
            while after is not None and not after.complete:
                self._keep(self._cache, after)
                after = step(self.results, self._known, found, self._cache.folder)
            unsaved = self._keep(self._cache, after or self._known)
            if many:  # so that the next start, from a disk that is cold by then, need not list their folders
                self._scanner.scan(self._known.files)
                self._keep_listed(self._cache)
            self._publish()
            if unsaved:
                self._snapshot = _with_problem(self._snapshot, str(self._cache.folder), unsaved, _UNSAVED)
            return True

    def _open(self) -> None:
        """Begin with what the cache holds, also where another process has made it anew. Raises OSError."""
        os.scandir(self.results).close()  # a folder that is not there is not made
        self._cache = Cache(self.results)
        self._known, self._shown = from_cache(*self._cache.load()), {}
        self._scanner = Scanner(self.results, self._cache.load_listed())
        self._listed = len(self._scanner.listed)

    def _keep_listed(self, cache: Cache) -> None:
        """Of years of runs: which folders need not be listed at the next start, now and then."""
        if len(self._scanner.listed) - self._listed < _MANY_FOLDERS:
            return
        self._listed = len(self._scanner.listed)
        with contextlib.suppress(OSError):  # the index is written next, and its failure told
            cache.save_listed(self._scanner.listed)

    def _keep(self, cache: Cache, after: Known) -> str:
        """Hold what was read, and keep it for the next start; the reason when it cannot be kept, which costs no more
        than that start's time."""
        replaced = self._known.saved - after.chunks.keys()
        new = [chunk for name, chunk in after.chunks.items() if name not in after.saved]
        self._known = after
        try:
            cache.save(after.index, new, replaced)
        except OSError as error:
            return f"the cache cannot be written, the next start will read every file: {error.strerror}"
        self._known = dataclasses.replace(after, saved=frozenset(after.chunks))
        return ""

    def _publish(self) -> None:
        known = self._known
        self._shown = show(known.chunks.values(), self._shown, known.has_rows)
        copies = {file: copy_of(other) for each in self._shown.values() for file, other in each.doubles.items()}
        described = sorted((path, stamp.mtime_ns, stamp.size) for path, stamp in known.described_stamps.items())
        problems = known.problems
        self._snapshot = assemble(
            self.results,
            self._shown.values(),
            known.described.machines,
            {**copies, **problems},
            (described, sorted(problems.items())),
        )

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
