"""Files to chunks, group by group; and the messages between a reader and its worker processes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from dashboard.store.chunks import Chunk, new_chunk
from dashboard.store.files import RECORD_SUFFIX, Stamp
from dashboard.store.ingest import Described, Reader

MOST_ROWS = 150_000  # of a chunk: what a reader holds in memory at once
SEALED_ROWS = 100_000  # from so many on, rows stay on disk


class Job(msgspec.Struct):
    """What a worker is asked, as JSON on its stdin."""

    results: str
    folder: str  # where the chunks go
    files: list[tuple[str, Stamp]]
    described: list[str]


class Outcome(msgspec.Struct):
    """What it answers, as JSON on its stdout: the names of the chunks it wrote, and what could not be read."""

    chunks: list[str]
    problems: dict[str, str]


def in_order(files: Mapping[str, Stamp]) -> list[tuple[str, Stamp]]:
    """Files that belong together one after the other: our records by machine and operator, oldest run first."""
    return sorted(files.items(), key=lambda file: _place(file[0]))


def _place(path: str) -> tuple[bool, str, str, str]:
    """Whether it is a foreign file, the machine's folder, of a record the operator, and the rest."""
    folder, _, name = path.rpartition("/")
    ours = path.endswith(RECORD_SUFFIX)
    return not ours, folder.partition("/")[0], name if ours else "", path


def read_chunks(
    results: Path, files: Iterable[tuple[str, Stamp]], described: Described
) -> Iterator[tuple[Chunk, dict[str, str]]]:
    """Read files, given ``in_order``, chunk by chunk; with each, what could not be read.

    A chunk ends where it has rows enough, or enough to be sealed and another machine or operator begins.
    """
    reader, stamps = Reader(results, described), dict[str, Stamp]()
    for _, group in itertools.groupby(files, key=lambda file: _place(file[0])[:3]):
        if reader.rows >= SEALED_ROWS:
            yield _chunk(reader, stamps)
            reader, stamps = Reader(results, described), {}
        for path, stamp in group:
            reader.read(path)
            stamps[path] = stamp
            if reader.rows >= MOST_ROWS:
                yield _chunk(reader, stamps)
                reader, stamps = Reader(results, described), {}
    if stamps:
        yield _chunk(reader, stamps)


def _chunk(reader: Reader, stamps: Mapping[str, Stamp]) -> tuple[Chunk, dict[str, str]]:
    batch = reader.batch()
    return new_chunk(batch.measurements, batch.runs, stamps), batch.problems
