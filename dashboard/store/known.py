"""What has been read of a results folder, and the step from there to what lies in it now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from dashboard.store import pool
from dashboard.store.asv_format import Meaning
from dashboard.store.cache import Index
from dashboard.store.chunks import Chunk
from dashboard.store.entries import Edition
from dashboard.store.files import BENCHMARKS, MACHINE, Entry, Scan, Stamp, joined, nearest
from dashboard.store.files import Known as KnownFiles
from dashboard.store.ingest import Described, read_described
from dashboard.store.jobs import in_order
from dashboard.store.tidy import tidied

MOST_AT_ONCE = 60_000  # files of one step: what is read is kept after each, and an interruption costs no more


@dataclass(frozen=True)
class Known:
    """Every result file with its chunk or its problem, the chunks, and the descriptions their rows were made with."""

    files: KnownFiles = field(default_factory=dict)  # by folder and name
    chunks: Mapping[str, Chunk] = field(default_factory=dict)
    described: Described = field(default_factory=lambda: Described({}, {}, {}))
    described_stamps: Mapping[str, Stamp] = field(default_factory=dict)
    scan_problems: Mapping[str, str] = field(default_factory=dict)
    unreadable: Mapping[str, Entry] = field(default_factory=dict)  # by path, those of ``files`` with a problem
    dropped: Mapping[str, frozenset[str]] = field(default_factory=dict)  # by chunk: files it no longer counts
    saved: frozenset[str] = frozenset()  # names of chunks that the cache has
    complete: bool = True  # False where files are left to be read

    def entry(self, path: str) -> Entry | None:
        """What was learnt of a file."""
        folder, _, name = path.rpartition("/")
        return self.files.get(folder, {}).get(name)

    def has_rows(self, path: str) -> bool:
        """Whether a file is there and could be read."""
        entry = self.entry(path)
        return entry is not None and bool(entry.chunk)

    @property
    def problems(self) -> dict[str, str]:
        """Why files and folders could not be read."""
        of_files = {path: entry.problem for path, entry in self.unreadable.items()}
        return {**self.described.problems, **of_files, **self.scan_problems}

    @property
    def index(self) -> Index:
        """The part that the cache keeps beside the chunks."""
        machines = {path: str(document["machine"]) for path, document in self.described.machines.items()}
        chunks = {name: sorted(self.dropped.get(name, ())) for name in self.chunks}
        return Index(chunks, dict(self.unreadable), dict(self.described.benchmarks), machines)


def from_cache(index: Index, chunks: dict[str, Chunk]) -> Known:
    """The state that a cache holds. Descriptions are read afresh by the first step, and compared with these."""
    machines: dict[str, dict[str, object]] = {path: {"machine": name} for path, name in index.machines.items()}
    entries = Edition({})
    for chunk in chunks.values():
        entries.put_chunk(chunk)
    for path, entry in index.unreadable.items():
        entries.put(path, entry)
    dropped = {name: frozenset(gone) for name, gone in index.chunks.items() if gone and name in chunks}
    described = Described(index.benchmarks, machines, {})
    saved = frozenset(chunks)
    return Known(entries.done(), chunks, described, unreadable=index.unreadable, dropped=dropped, saved=saved)


def step(results: Path, known: Known, found: Scan, folder: Path) -> Known | None:
    """The state after reading what is new or changed and dropping what is gone; None when there is nothing of either.

    ``folder`` is where chunks may be left. Of very many files some are left for the next step, and the state is not
    ``complete``.
    """
    described = known.described
    if found.described != known.described_stamps:
        described = read_described(results, found.described)
    again = _stale(known, described)
    due = dict(_due(known.files, found, again))
    gone = set(_gone(known.files, found))
    same = found.described == known.described_stamps and found.problems == known.scan_problems
    if not due and not gone and same and known.complete:
        return None
    now = dict(in_order(due)[:MOST_AT_ONCE]) if len(due) > MOST_AT_ONCE else due
    dropped = gone | due.keys()
    chunks, outdated = _without(known, dropped)
    read, problems, saved = pool.read_all(results, now, described, folder)
    after = tidied(chunks, read, folder)
    saved |= {name for name, chunk in after.items() if chunk.path is not None} | known.saved
    entries = Edition(known.files)
    for path in dropped:
        entries.drop(path)
    bad = {path: Entry(now[path], "", reason) for path, reason in problems.items()}
    for path, entry in bad.items():
        entries.put(path, entry)
    for name in after.keys() - known.chunks.keys():
        entries.put_chunk(after[name])
    return Known(
        files=entries.done(),
        chunks=after,
        described=described,
        described_stamps=found.described,
        scan_problems=found.problems,
        unreadable={path: entry for path, entry in known.unreadable.items() if path not in dropped} | bad,
        dropped={name: outdated[name] for name in after if name in outdated},
        saved=frozenset(saved & after.keys()),
        complete=len(now) == len(due),
    )


def _due(files: KnownFiles, found: Scan, again: set[str]) -> Iterator[tuple[str, Stamp]]:
    """Files that are new or changed, and of those to be read ``again`` the ones that are there."""
    for folder, names in found.results.items():
        held = files.get(folder, {})
        for name, stamp in names.items():
            entry = held.get(name)
            path = joined(folder, name)
            if entry is None or entry.stamp != stamp or path in again:
                yield path, stamp


def _gone(files: KnownFiles, found: Scan) -> Iterator[str]:
    for folder in files.keys() - found.unchanged:
        for name in files[folder].keys() - found.results.get(folder, {}).keys():
            yield joined(folder, name)


def _without(known: Known, dropped: set[str]) -> tuple[dict[str, Chunk], dict[str, frozenset[str]]]:
    """The chunks without these files' rows, and what each of them does not count by now."""
    chunks, outdated = dict(known.chunks), dict(known.dropped)
    held: dict[str, set[str]] = {}
    for path in dropped:
        entry = known.entry(path)
        if entry is not None and entry.chunk:
            held.setdefault(entry.chunk, set()).add(path)
    for name, paths in held.items():
        less = chunks.pop(name).without(paths)
        if less.sources:
            chunks[name] = less
            outdated[name] = outdated.get(name, frozenset()) | paths
    return chunks, outdated


def _stale(known: Known, now: Described) -> set[str]:
    """asv files whose rows were made with a unit, parameter name or machine name that has changed since."""
    before = known.described
    moved = {
        path for path in before.machines.keys() | now.machines.keys() if _machine(before, path) != _machine(now, path)
    }
    stale = {
        joined(folder, name)
        for folder, names in known.files.items()
        if moved and joined(folder, MACHINE) in moved
        for name in names
    }
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
        if any(project == "asv" for _, project, _ in chunk.partitions):
            concerned = chunk.rows().filter(asked).select(pl.col("source").cast(pl.String)).unique().collect()
            stale.update(path for path in concerned["source"] if nearest(path, BENCHMARKS, changed) is not None)
    return stale


def _machine(described: Described, path: str) -> object:
    return described.machines.get(path, {}).get("machine")


def _differing(before: dict[str, Meaning], now: dict[str, Meaning]) -> set[str]:
    return {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
