"""Reads many files in a process of its own: a job as JSON on stdin, chunks in the cache's folder, JSON on stdout.

Started by dashboard.store.pool as a fresh interpreter, because a process must not be forked once polars is loaded.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import msgspec

from dashboard.store import chunks
from dashboard.store.ingest import read_described
from dashboard.store.jobs import SEALED_ROWS, Job, Outcome, read_chunks


def main() -> None:
    """Do one job. The collector is off: what is read makes no cycles, and it would walk every float."""
    gc.disable()
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    results, folder = Path(job.results), Path(job.folder)
    outcome = Outcome([], {})
    for chunk, problems in read_chunks(results, job.files, read_described(results, job.described)):
        if chunk.height < SEALED_ROWS:
            chunks.save(folder, chunk)
        else:
            chunks.seal(folder, chunk)
        outcome.chunks.append(chunk.name)
        outcome.problems |= problems
    sys.stdout.buffer.write(msgspec.json.encode(outcome))


if __name__ == "__main__":
    main()
