"""Chunks: the rows of some files, held together in memory and, as Arrow files, in the cache.

A chunk is immutable. Rows of files that changed or went are dropped from it in memory; its file keeps them until the
chunk is merged into another, and the index says which files' rows count.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from dashboard.store.schema import MEASUREMENTS, RUNS, empty


@dataclass(frozen=True)
class Chunk:
    """``name`` is unique for all time and names its files in the cache."""

    name: str
    measurements: pl.DataFrame
    runs: pl.DataFrame

    @property
    def sources(self) -> frozenset[str]:
        """The files whose rows it holds."""
        return frozenset(self.runs["source"].cast(pl.String))

    def keep(self, sources: Collection[str]) -> Chunk:
        """The chunk with the rows of these files alone."""
        if self.sources <= set(sources):
            return self
        kept = pl.col("source").is_in(sorted(sources))
        return Chunk(self.name, self.measurements.filter(kept), self.runs.filter(kept))


def new_chunk(measurements: pl.DataFrame, runs: pl.DataFrame) -> Chunk:
    return Chunk(uuid.uuid4().hex, measurements, runs)


def merge(chunks: Sequence[Chunk]) -> Chunk:
    """One chunk of the rows of many."""
    return new_chunk(
        pl.concat([chunk.measurements for chunk in chunks], rechunk=True),
        pl.concat([chunk.runs for chunk in chunks], rechunk=True),
    )


def save(folder: Path, chunk: Chunk) -> None:
    """Write a chunk's files, each whole or not at all. Raises OSError."""
    for kind, frame in (("measurements", chunk.measurements), ("runs", chunk.runs)):
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


def load(folder: Path, name: str) -> Chunk:
    """Read a chunk. Raises OSError or polars' errors when its files are gone or damaged."""
    return Chunk(
        name,
        _load(folder / f"{name}.measurements.arrow", MEASUREMENTS),
        _load(folder / f"{name}.runs.arrow", RUNS),
    )


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
