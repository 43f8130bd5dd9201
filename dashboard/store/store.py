"""The store: one results folder, its current snapshot, and the way to the next."""

from __future__ import annotations

import threading
from pathlib import Path

from dashboard.store.snapshot import Snapshot, empty_snapshot


class Store:
    """Holds the current snapshot of a results folder. Any thread may read it or ask for a refresh."""

    def __init__(self, results: Path) -> None:
        self.results = results
        self._lock = threading.Lock()
        self._snapshot = empty_snapshot(results)

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot; taking it never waits for a refresh."""
        return self._snapshot

    def refresh(self) -> bool:
        """Read what is new, changed or gone under the results folder; True when the snapshot was replaced."""
        with self._lock:
            return False


def open_store(results: Path) -> Store:
    """A store over a results folder, read as far as the cache and the files allow. Never raises for bad files."""
    store = Store(results)
    store.refresh()
    return store
