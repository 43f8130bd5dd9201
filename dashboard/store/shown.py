"""Chunks as a snapshot shows them: without asv's copies of our own records, and with their newest rows picked out.

Both are kept from one snapshot to the next, so that a refresh costs what is new and not what is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from dashboard.store import twins
from dashboard.store.chunks import Chunk
from dashboard.store.queries import latest


@dataclass(frozen=True)
class Shown:
    """``candidates`` and ``copies`` are what dashboard.store.twins found in the chunk."""

    chunk: Chunk
    candidates: pl.DataFrame
    copies: pl.DataFrame
    measurements: pl.DataFrame
    latest: pl.DataFrame


def show(chunks: Iterable[Chunk], before: Mapping[str, Shown]) -> dict[str, Shown]:
    """Every chunk by name; from ``before`` where nothing changed for it."""
    every = list(chunks)
    known = set().union(*(twins.sweeps(chunk.runs) for chunk in every))
    return {chunk.name: _show(chunk, known, before.get(chunk.name)) for chunk in every}


def _show(chunk: Chunk, known: set[twins.Sweep], before: Shown | None) -> Shown:
    same = before is not None and before.chunk is chunk
    candidates = before.candidates if before and same else twins.asked(chunk.measurements)
    copies = twins.copies(candidates, known)
    if before and same and copies.equals(before.copies):
        return before
    measurements = twins.without(chunk.measurements, copies)
    return Shown(chunk, candidates, copies, measurements, latest(measurements))
