"""What has been read of a results folder, and the step from there to what lies in it now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from dashboard.store import pool
from dashboard.store.asv_format import Meaning
from dashboard.store.cache import Entry, Index
from dashboard.store.chunks import Chunk, merge
from dashboard.store.files import BENCHMARKS, MACHINE, Scan, Stamp, nearest
from dashboard.store.ingest import Described, read_described

_SMALL_ROWS = 20_000
_MOST_SMALL = 12  # chunks so small; with one more they are merged


@dataclass(frozen=True)
class Known:
    """Every result file with its chunk or its problem, the chunks, and the descriptions their rows were made with."""

    files: dict[str, Entry] = field(default_factory=dict)
    chunks: dict[str, Chunk] = field(default_factory=dict)
    described: Described = field(default_factory=lambda: Described({}, {}, {}))
    described_stamps: dict[str, Stamp] = field(default_factory=dict)
    scan_problems: dict[str, str] = field(default_factory=dict)
    saved: frozenset[str] = frozenset()  # names of chunks that the cache has

    @property
    def problems(self) -> dict[str, str]:
        """Why files and folders could not be read."""
        of_files = {path: entry.problem for path, entry in self.files.items() if entry.problem}
        return {**self.described.problems, **of_files, **self.scan_problems}

    def has_rows(self, path: str) -> bool:
        """Whether a file is there and could be read."""
        return path in self.files and bool(self.files[path].chunk)

    @property
    def index(self) -> Index:
        """The part that the cache keeps beside the chunks."""
        machines = {path: str(document["machine"]) for path, document in self.described.machines.items()}
        return Index(self.files, self.described.benchmarks, machines)


def from_cache(index: Index, chunks: dict[str, Chunk]) -> Known:
    """The state that a cache holds. Descriptions are read afresh by the first step, and compared with these."""
    machines: dict[str, dict[str, object]] = {path: {"machine": name} for path, name in index.machines.items()}
    return Known(index.files, chunks, Described(index.benchmarks, machines, {}), saved=frozenset(chunks))


def step(results: Path, known: Known, found: Scan, folder: Path) -> Known | None:
    """The state after reading what is new or changed and dropping what is gone; None when there is nothing of either.

    ``folder`` is where worker processes may leave chunks.
    """
    described = known.described
    if found.described != known.described_stamps:
        described = read_described(results, found.described)
    again = _stale(known, described) & found.results.keys()
    due = {
        path: stamp
        for path, stamp in found.results.items()
        if path in again or path not in known.files or known.files[path].stamp != stamp
    }
    gone = known.files.keys() - found.results.keys()
    same = found.described == known.described_stamps and found.problems == known.scan_problems
    if not due and not gone and same:
        return None
    dropped = gone | due.keys()
    chunks = dict(_without(known.chunks, dropped))
    files = {path: entry for path, entry in known.files.items() if path not in dropped}
    read, problems, saved = pool.read_all(results, due, described, folder)
    holder = {}
    for chunk in _compact(chunks, read):
        chunks[chunk.name] = chunk
        holder.update(dict.fromkeys(chunk.sources, chunk.name))
    files = {path: Entry(entry.stamp, holder.get(path, entry.chunk), entry.problem) for path, entry in files.items()}
    files |= {path: Entry(stamp, holder.get(path, ""), problems.get(path, "")) for path, stamp in due.items()}
    kept = (known.saved | saved) & chunks.keys()
    return Known(files, chunks, described, found.described, found.problems, kept)


def _without(chunks: dict[str, Chunk], dropped: set[str]) -> Iterator[tuple[str, Chunk]]:
    for name, chunk in chunks.items():
        left = chunk.sources - dropped
        if left:
            yield name, chunk.keep(left)


def _compact(chunks: dict[str, Chunk], read: list[Chunk]) -> list[Chunk]:
    """The chunks to add: those just read; or, when small ones have piled up, all small ones in one.

    Merged chunks leave ``chunks``. Without this, a run a minute would split every frame into ever more pieces.
    """
    read = [chunk for chunk in read if chunk.sources]
    small = [chunk for chunk in chunks.values() if chunk.measurements.height < _SMALL_ROWS]
    if len(small) + len(read) <= _MOST_SMALL or not small:
        return read
    for chunk in small:
        del chunks[chunk.name]
    fresh = [chunk for chunk in read if chunk.measurements.height < _SMALL_ROWS]
    return [merge([*small, *fresh]), *(chunk for chunk in read if chunk not in fresh)]


def _stale(known: Known, now: Described) -> set[str]:
    """asv files whose rows were made with a unit, parameter name or machine name that has changed since."""
    before = known.described
    moved = {
        path for path in before.machines.keys() | now.machines.keys() if _machine(before, path) != _machine(now, path)
    }
    stale = {path for path in known.files if f"{path.rpartition('/')[0]}/{MACHINE}".removeprefix("/") in moved}
    changed = {
        path: names
        for path in before.benchmarks.keys() | now.benchmarks.keys()
        if (names := _differing(before.benchmarks.get(path, {}), now.benchmarks.get(path, {})))
    }
    if not changed:
        return stale
    every = set[str]().union(*changed.values())
    asked = (pl.col("project") == "asv") & pl.col("operator").is_in(sorted(every))
    for chunk in known.chunks.values():
        for path in chunk.measurements.filter(asked)["source"].unique().cast(pl.String):
            if nearest(path, BENCHMARKS, changed) is not None:
                stale.add(path)
    return stale


def _machine(described: Described, path: str) -> object:
    return described.machines.get(path, {}).get("machine")


def _differing(before: dict[str, Meaning], now: dict[str, Meaning]) -> set[str]:
    return {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
