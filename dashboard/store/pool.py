"""Reads files in this process when they are few, in worker processes when they are many."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from dashboard.store import chunks
from dashboard.store.chunks import Chunk
from dashboard.store.files import Stamp
from dashboard.store.ingest import Described
from dashboard.store.jobs import Job, Outcome, in_order, read_chunks

FEW_BYTES = 6 << 20  # below, a worker costs more than it saves: it takes half a second to start
MOST_WORKERS = 4
_File = tuple[str, Stamp]


def read_all(
    results: Path, files: dict[str, Stamp], described: Described, folder: Path
) -> tuple[list[Chunk], dict[str, str], set[str]]:
    """Chunks of the files, reasons for those that could not be read, and names of chunks that are saved already."""
    ordered = in_order(files)
    total = sum(stamp.size for stamp in files.values())
    workers = min(MOST_WORKERS, os.cpu_count() or 1, 1 + total // FEW_BYTES)
    if workers < 2:
        found, problems = _here(results, ordered, described)
        return found, problems, set()
    shares = _shares(ordered, total, workers)
    started = [_start(Job(str(results), str(folder), share, _paths(described))) for share in shares]
    every, problems, saved = list[Chunk](), dict[str, str](), set[str]()
    for process, share in zip(started, shares, strict=True):
        outcome = _finish(process)
        loaded = chunks.load(folder, outcome.chunks) if outcome else {}
        if outcome and len(loaded) == len(outcome.chunks):
            read, bad = list(loaded.values()), outcome.problems
            saved.update(loaded)
        else:
            # Killed for memory, no space for its chunks: slower here, but nothing is lost.
            read, bad = _here(results, share, described)
        every += read
        problems |= bad
    return every, problems, saved


def _shares(ordered: list[_File], total: int, workers: int) -> list[list[_File]]:
    """As many stretches of the files, of about as many bytes each."""
    shares: list[list[_File]] = [[] for _ in range(workers)]
    passed = 0
    for path, stamp in ordered:
        shares[min(passed * workers // max(total, 1), workers - 1)].append((path, stamp))
        passed += stamp.size
    return shares


def _here(results: Path, files: list[_File], described: Described) -> tuple[list[Chunk], dict[str, str]]:
    read, problems = [], dict[str, str]()
    for chunk, bad in read_chunks(results, files, described):
        read.append(chunk)
        problems |= bad
    return read, problems


def _paths(described: Described) -> list[str]:
    return [*described.benchmarks, *described.machines]


def _start(job: Job) -> subprocess.Popen[bytes]:
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
    process = subprocess.Popen(
        [sys.executable, "-m", "dashboard.store.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, "POLARS_MAX_THREADS": "1"},
    )
    assert process.stdin is not None
    try:
        process.stdin.write(msgspec.json.encode(job))
        process.stdin.close()
    except BrokenPipeError:
        pass  # it ended before it read: its exit status tells
    return process


def _finish(process: subprocess.Popen[bytes]) -> Outcome | None:
    """What a worker answered; None when it failed, whose reason it has printed on stderr."""
    assert process.stdout is not None
    answer = process.stdout.read()
    return msgspec.json.decode(answer, type=Outcome) if process.wait() == 0 else None
