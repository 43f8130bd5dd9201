"""Chunks as a snapshot shows them: without asv's copies of our own records, and with their newest rows picked out.

Both are kept from one snapshot to the next, so that a refresh costs what is new and not what is there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from dashboard.store import twins
from dashboard.store.chunks import Chunk
from dashboard.store.queries import latest


@dataclass(frozen=True)
class Shown:
    """``sweeps``, ``candidates`` and ``copies`` are what dashboard.store.twins found in the chunk."""

    chunk: Chunk
    sweeps: frozenset[twins.Sweep]
    candidates: pl.DataFrame
    copies: pl.DataFrame | None  # None: not looked for yet
    measurements: pl.DataFrame
    latest: pl.DataFrame


def show(chunks: Iterable[Chunk], before: Mapping[str, Shown]) -> dict[str, Shown]:
    """Every chunk by name; from ``before`` where nothing changed for it."""
    found = {chunk.name: _looked_at(chunk, before.get(chunk.name)) for chunk in chunks}
    known = frozenset[twins.Sweep]().union(*(each.sweeps for each in found.values()))
    return {name: _without_copies(each, known) for name, each in found.items()}


def _looked_at(chunk: Chunk, before: Shown | None) -> Shown:
    """What is known of the chunk alone; the rows of one not seen before are not made yet."""
    if before is not None and before.chunk is chunk:
        return before
    sweeps, candidates = twins.sweeps(chunk.runs), twins.asked(chunk.measurements)
    nothing = chunk.measurements.clear()
    return Shown(chunk, sweeps, candidates, None, nothing, nothing)


def _without_copies(shown: Shown, known: frozenset[twins.Sweep]) -> Shown:
    copies = twins.copies(shown.candidates, known)
    if shown.copies is not None and copies.equals(shown.copies):
        return shown
    if copies.is_empty():
        measurements, newest = shown.chunk.measurements, shown.chunk.latest
    else:
        measurements = twins.without(shown.chunk.measurements, copies)
        newest = latest(measurements)
    return dataclasses.replace(shown, copies=copies, measurements=measurements, latest=newest)
