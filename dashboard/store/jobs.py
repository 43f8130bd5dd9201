"""Files to chunks, lot by lot; and the messages between a reader and its worker processes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import msgspec

from dashboard.store.chunks import Chunk, new_chunk
from dashboard.store.files import RECORD_SUFFIX
from dashboard.store.ingest import Described, read_files

FILES_A_CHUNK = 64


class Job(msgspec.Struct):
    """What a worker is asked, as JSON on its stdin."""

    results: str
    folder: str  # where the chunks go
    paths: list[str]
    described: list[str]


class Outcome(msgspec.Struct):
    """What it answers, as JSON on its stdout: the names of the chunks it saved, and what could not be read."""

    chunks: list[str]
    problems: dict[str, str]


def lots(paths: list[str]) -> list[list[str]]:
    """Files for one chunk each: our records apart from foreign files, whose columns are others."""
    ours = [path for path in paths if path.endswith(RECORD_SUFFIX)]
    foreign = [path for path in paths if not path.endswith(RECORD_SUFFIX)]
    return [list(lot) for kind in (ours, foreign) for lot in _batched(kind)]


def _batched(paths: list[str]) -> Iterator[tuple[str, ...]]:
    rest = iter(paths)
    while lot := tuple(itertools.islice(rest, FILES_A_CHUNK)):
        yield lot


def read_chunks(results: Path, paths: list[str], described: Described) -> Iterator[tuple[Chunk, dict[str, str]]]:
    """Read files chunk by chunk; with each, what could not be read."""
    for lot in lots(paths):
        batch = read_files(results, lot, described)
        yield new_chunk(batch.measurements, batch.runs), batch.problems
