"""Which files are known, by folder and name: hundreds of thousands of them, of which a refresh changes a few."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from dashboard.store.chunks import Chunk
from dashboard.store.files import Entry, Known, Stamp


class Edition:
    """Entries in the making: what is put and dropped leaves the ones they were made of as they are."""

    def __init__(self, before: Known) -> None:
        self._entries: dict[str, Mapping[str, Entry]] = dict(before)
        self._own: dict[str, dict[str, Entry]] = {}  # folders that are copies by now

    def put(self, path: str, entry: Entry) -> None:
        folder, _, name = path.rpartition("/")
        self._of(folder)[name] = entry

    def drop(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        self._of(folder).pop(name, None)

    def put_chunk(self, chunk: Chunk) -> None:
        """The files whose rows a chunk holds."""
        stamps = chunk.runs.select(pl.col("source").cast(pl.String), "mtime_ns", "size")
        folder, names = "", self._of("")
        for path, mtime_ns, size in stamps.iter_rows():  # of a store of years hundreds of thousands: spelt out
            above, _, name = path.rpartition("/")
            if above != folder:
                folder, names = above, self._of(above)
            names[name] = Entry(Stamp(mtime_ns, size), chunk.name)

    def done(self) -> Known:
        """The entries, without folders that hold none."""
        for folder, names in self._own.items():
            if not names:
                del self._entries[folder]
        return self._entries

    def _of(self, folder: str) -> dict[str, Entry]:
        if folder not in self._own:
            self._own[folder] = dict(self._entries.get(folder, {}))
            self._entries[folder] = self._own[folder]
        return self._own[folder]
