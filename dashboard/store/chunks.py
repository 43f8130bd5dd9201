"""Chunks: the rows of some files, held together; a small one in memory, a sealed one in the cache's folder.

A chunk is immutable. Rows of files that changed or went are dropped from it by dropping its ``runs``; its files in the
cache keep them until the chunk is merged into another, and the index says which of its files no longer count.

A sealed chunk's rows lie in a Parquet file, series by series, and name their run by its number: what all rows of a run
share (machine, commit, times, file) is joined to the few rows that a question needs. So a history of years costs the
memory of its runs, not of its measurements.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from dashboard.store.files import Stamp
from dashboard.store.queries import newest_rows
from dashboard.store.schema import MEASUREMENTS, RUNS, SERIES, empty

OF_RUN = ("machine", "run_id", "source", "project", "environment", "commit", "commit_time")
"""Columns that all rows of one file share, and a sealed chunk keeps once."""

HELD_RUNS: dict[str, pl.DataType] = {**RUNS, "run": pl.UInt32(), "mtime_ns": pl.Int64(), "size": pl.Int64()}
"""``runs`` of a chunk: ``run`` is what its rows name it by, the last two are the file's stamp."""

SEALED: dict[str, pl.DataType] = {"run": pl.UInt32(), **{n: t for n, t in MEASUREMENTS.items() if n not in OF_RUN}}
_ORDER = [name for name in (*SERIES, "project") if name in MEASUREMENTS]
_ROW_GROUP = 50_000
_LOADERS = 2

Partition = tuple[str, str, str]  # machine, project, operator; "" for the many operators of a foreign file


@dataclass(frozen=True)
class Chunk:
    """``name`` is unique for all time and names its files in the cache.

    ``latest`` is the newest row of every series in it: found once, when the chunk is made. ``held`` are the rows of a
    chunk in memory, ``path`` the file with those of a sealed one.
    """

    name: str
    runs: pl.DataFrame
    latest: pl.DataFrame
    held: pl.DataFrame | None = None
    path: Path | None = None

    def rows(self, runs: pl.DataFrame | None = None) -> pl.LazyFrame:
        """Its measurements; those of some of its runs alone where they are given."""
        chosen = self.runs if runs is None else runs
        if self.path is None:
            assert self.held is not None
            rows = self.held.lazy()
            return rows if runs is None else rows.join(chosen.lazy().select("source"), on="source", how="semi")
        shared = chosen.lazy().select("run", *OF_RUN)
        rows = pl.scan_parquet(self.path, glob=False, cache=False)
        if chosen.height < self.runs.height:
            rows = rows.filter(pl.col("run").is_in(chosen["run"].implode()))
        return rows.join(shared, on="run", how="inner", maintain_order="left").select(list(MEASUREMENTS))

    @property
    def height(self) -> int:
        """How many rows it has."""
        return int(self.runs["rows"].sum())

    @cached_property
    def sources(self) -> frozenset[str]:
        """The files whose rows it holds."""
        return frozenset(self.runs["source"].cast(pl.String))

    @cached_property
    def partitions(self) -> frozenset[Partition]:
        """What there are rows of."""
        found = self.runs.select(pl.col("machine", "project", "operator").cast(pl.String)).unique()
        return frozenset(found.iter_rows())

    @cached_property
    def mark(self) -> int:
        """A number of the files it holds, whatever their order: those of two chunks add up to that of both."""
        stamps = self.runs.select(pl.struct(pl.col("source").cast(pl.String), "mtime_ns", "size").alias("stamp"))
        return int(stamps["stamp"].hash(seed=1).cast(pl.Int128).sum()) if self.runs.height else 0

    def keep(self, sources: Collection[str]) -> Chunk:
        """The chunk with the rows of these files alone."""
        return self if self.sources <= set(sources) else self._of(pl.col("source").is_in(sorted(sources)))

    def without(self, sources: Collection[str]) -> Chunk:
        """The chunk without the rows of these files."""
        if not sources or self.sources.isdisjoint(sources):
            return self
        return self._of(~pl.col("source").is_in(sorted(sources)))

    def _of(self, kept: pl.Expr) -> Chunk:
        runs = self.runs.filter(kept)
        held = None if self.held is None else self.held.filter(kept)
        less = dataclasses.replace(self, runs=runs, held=held)
        newest = less.latest.filter(kept)
        return less if newest.height == less.latest.height else dataclasses.replace(less, latest=latest_of(less.rows()))


def new_chunk(measurements: pl.DataFrame, runs: pl.DataFrame, stamps: Mapping[str, Stamp]) -> Chunk:
    """A chunk in memory of the rows of files with these stamps."""
    files = [stamps[source] for source in runs["source"].cast(pl.String)]
    stamped = runs.with_columns(
        mtime_ns=pl.Series([file.mtime_ns for file in files], dtype=pl.Int64()),
        size=pl.Series([file.size for file in files], dtype=pl.Int64()),
    )
    return _in_memory(stamped, measurements)


def _in_memory(runs: pl.DataFrame, rows: pl.DataFrame) -> Chunk:
    """Of stamped runs, which are numbered anew, and all their rows."""
    numbered = runs.with_columns(run=pl.int_range(runs.height, dtype=pl.UInt32())).select(list(HELD_RUNS))
    return Chunk(uuid.uuid4().hex, numbered, rows[newest_rows(rows)], held=rows)


def latest_of(rows: pl.LazyFrame) -> pl.DataFrame:
    """``queries.latest`` of rows that are not in memory: the columns that decide are read first."""
    at = newest_rows(rows.select(*SERIES, "commit_time", "started", "run_id").collect())
    marked = rows.with_row_index("row").filter(pl.col("row").is_in(at.implode()))
    return marked.drop("row").collect()


def merge(chunks: Sequence[Chunk]) -> Chunk:
    """One chunk in memory of the rows of many."""
    runs = pl.concat([chunk.runs for chunk in chunks], rechunk=True)
    return _in_memory(runs, pl.concat([chunk.rows() for chunk in chunks]).collect().rechunk())


def split(chunk: Chunk) -> list[Chunk]:
    """Chunks in memory of one partition each."""
    key = ["machine", "project", "operator"]
    parts = chunk.runs.partition_by(key, maintain_order=True)
    return [_in_memory(runs, chunk.rows(runs).collect()) for runs in parts]


def save(folder: Path, chunk: Chunk) -> None:
    """Write the files of a chunk in memory, each whole or not at all. Raises OSError."""
    assert chunk.held is not None
    _write(folder / f"{chunk.name}.measurements.arrow", chunk.held)
    _write_described(folder, chunk)


def seal(folder: Path, chunk: Chunk) -> Chunk:
    """Write a chunk in memory as a sealed one, which it returns. Raises OSError."""
    assert chunk.held is not None
    path = folder / f"{chunk.name}.parquet"
    numbers = chunk.runs.select("source", "run")
    order = [pl.col(name).to_physical() for name in _ORDER]  # in one piece each, whichever first
    rows = chunk.held.sort(order, maintain_order=True).join(numbers, on="source", how="left", maintain_order="left")
    with replacing(path) as temporary:
        rows.select(list(SEALED)).write_parquet(temporary, compression="lz4", row_group_size=_ROW_GROUP)
    _write_described(folder, chunk)
    return dataclasses.replace(chunk, held=None, path=path)


def _write_described(folder: Path, chunk: Chunk) -> None:
    _write(folder / f"{chunk.name}.runs.arrow", chunk.runs)
    _write(folder / f"{chunk.name}.newest.arrow", chunk.latest)


def _write(path: Path, frame: pl.DataFrame) -> None:
    # A column of nulls alone is left out: it is made again on loading, and then costs no memory.
    filled = frame.select([column for column in frame if column.null_count() < frame.height])
    with replacing(path) as temporary:
        filled.write_ipc(temporary, compression="lz4")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Where to write what takes a file's place at the end. What the cache loses is made again: nothing is synced."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise


def load(folder: Path, names: Collection[str]) -> dict[str, Chunk]:
    """Read chunks by name, several at once; those whose files are gone or damaged are left out."""
    with ThreadPoolExecutor(_LOADERS) as pool:  # most of it is decompressing, outside Python
        found = pool.map(lambda name: _load_one(folder, name), names)
        return {chunk.name: chunk for chunk in found if chunk is not None}


def _load_one(folder: Path, name: str) -> Chunk | None:
    sealed = folder / f"{name}.parquet"
    try:
        runs = _load(folder / f"{name}.runs.arrow", HELD_RUNS)
        latest = _load(folder / f"{name}.newest.arrow", MEASUREMENTS)
        if not sealed.exists():
            return Chunk(name, runs, latest, held=_load(folder / f"{name}.measurements.arrow", MEASUREMENTS))
        rows = pl.scan_parquet(sealed, glob=False, cache=False).collect_schema()
        return Chunk(name, runs, latest, path=sealed) if dict(rows) == SEALED else None
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

    The age spares what another process has written and not yet entered into the index, or still reads.
    """
    for path in (*folder.glob("*.arrow"), *folder.glob("*.parquet")):
        if path.name.partition(".")[0] not in names:
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < older_than:
                    path.unlink()


def touch(folder: Path, names: Collection[str]) -> None:
    """Begin the hour anew in which ``remove_others`` spares the files of chunks that were just replaced."""
    for name in names:
        for path in folder.glob(f"{name}.*"):
            with contextlib.suppress(FileNotFoundError):
                os.utime(path)
