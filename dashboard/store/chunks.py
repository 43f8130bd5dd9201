"""Chunks: the rows of some files, held together in memory and, as Arrow files, in the cache.

A chunk is immutable. Rows of files that changed or went are dropped from it in memory; its file keeps them until the
chunk is merged into another, and the index says which files' rows count.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from dashboard.store.queries import newest_rows
from dashboard.store.schema import MEASUREMENTS, RUNS, empty

_LOADERS = 2


@dataclass(frozen=True)
class Chunk:
    """``name`` is unique for all time and names its files in the cache.

    ``newest`` holds the positions of the newest row of every series in it (column "row"): found once, when the chunk
    is made, it spares every start the grouping of all rows.
    """

    name: str
    measurements: pl.DataFrame
    runs: pl.DataFrame
    newest: pl.DataFrame

    @property
    def latest(self) -> pl.DataFrame:
        """The newest row of every series."""
        return self.measurements[self.newest["row"]]

    @property
    def sources(self) -> frozenset[str]:
        """The files whose rows it holds."""
        return frozenset(self.runs["source"].cast(pl.String))

    def keep(self, sources: Collection[str]) -> Chunk:
        """The chunk with the rows of these files alone."""
        if self.sources <= set(sources):
            return self
        kept = pl.col("source").is_in(sorted(sources))
        return new_chunk(self.measurements.filter(kept), self.runs.filter(kept), self.name)


def new_chunk(measurements: pl.DataFrame, runs: pl.DataFrame, name: str = "") -> Chunk:
    """A chunk of these rows; of a new name, unless it is what is left of an old one."""
    return Chunk(name or uuid.uuid4().hex, measurements, runs, newest_rows(measurements).to_frame())


def merge(chunks: Sequence[Chunk]) -> Chunk:
    """One chunk of the rows of many."""
    return new_chunk(
        pl.concat([chunk.measurements for chunk in chunks], rechunk=True),
        pl.concat([chunk.runs for chunk in chunks], rechunk=True),
    )


def save(folder: Path, chunk: Chunk) -> None:
    """Write a chunk's files, each whole or not at all. Raises OSError."""
    for kind, frame in _frames(chunk).items():
        path = folder / f"{chunk.name}.{kind}.arrow"
        temporary = folder / f".{path.name}.{os.getpid()}"
        try:
            # A column of nulls alone is left out: it is made again on loading, and then costs no memory.
            frame.select([column for column in frame if column.null_count() < frame.height]).write_ipc(
                temporary, compression="lz4"
            )
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
            raise


def _frames(chunk: Chunk) -> dict[str, pl.DataFrame]:
    return {"measurements": chunk.measurements, "runs": chunk.runs, "newest": chunk.newest}


def load(folder: Path, names: Collection[str]) -> dict[str, Chunk]:
    """Read chunks by name, several at once; those whose files are gone or damaged are left out."""
    with ThreadPoolExecutor(_LOADERS) as pool:  # most of it is decompressing, outside Python
        found = pool.map(lambda name: _load_one(folder, name), names)
        return {chunk.name: chunk for chunk in found if chunk is not None}


def _load_one(folder: Path, name: str) -> Chunk | None:
    try:
        return Chunk(
            name,
            _load(folder / f"{name}.measurements.arrow", MEASUREMENTS),
            _load(folder / f"{name}.runs.arrow", RUNS),
            _load(folder / f"{name}.newest.arrow", {"row": pl.UInt32()}),
        )
    except (OSError, pl.exceptions.PolarsError):
        return None  # a cache may lose any file: the results are read again


def _load(path: Path, schema: dict[str, pl.DataType]) -> pl.DataFrame:
    # Read through a handle: given a path, polars would take brackets in a folder's name for a pattern.
    with path.open("rb") as file:
        frame = pl.read_ipc(file)
    if not frame.width:  # no rows: every column was left out
        return empty(schema)
    return frame.select(
        [pl.col(name).cast(t) if name in frame.columns else pl.lit(None, t).alias(name) for name, t in schema.items()]
    )


def remove_others(folder: Path, names: Collection[str], older_than: float) -> None:
    """Delete chunk files that are not among ``names`` and were last written before ``older_than`` (seconds, epoch).

    The age spares what another process has written and not yet entered into the index.
    """
    for path in folder.glob("*.arrow"):
        if path.name.partition(".")[0] not in names:
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < older_than:
                    path.unlink()
