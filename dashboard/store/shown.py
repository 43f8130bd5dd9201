"""Chunks as a snapshot shows them: without copies, asv's of our own records and of files, and with their newest rows
picked out.

Both are kept from one snapshot to the next, so that a refresh costs what is new and not what is there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl

from dashboard.store import doubles, twins
from dashboard.store.chunks import Chunk
from dashboard.store.queries import latest


@dataclass(frozen=True)
class Shown:
    """``sweeps``, ``candidates`` and ``copies`` are what dashboard.store.twins found in the chunk, ``misplaced`` and
    ``doubles`` what dashboard.store.doubles did: files in another place than theirs, and those of them not counted.
    """

    chunk: Chunk
    sweeps: frozenset[twins.Sweep]
    candidates: pl.DataFrame
    copies: pl.DataFrame | None  # None: not looked for yet
    measurements: pl.DataFrame
    latest: pl.DataFrame
    runs: pl.DataFrame
    misplaced: Mapping[str, str] = field(default_factory=dict)
    doubles: Mapping[str, str] = field(default_factory=dict)


def show(chunks: Iterable[Chunk], before: Mapping[str, Shown], counts: Callable[[str], bool]) -> dict[str, Shown]:
    """Every chunk by name; from ``before`` where nothing changed for it. ``counts`` says whether a file has rows."""
    found = {chunk.name: _looked_at(chunk, before.get(chunk.name)) for chunk in chunks}
    known = frozenset[twins.Sweep]().union(*(each.sweeps for each in found.values()))
    extra = doubles.doubles((pair for each in found.values() for pair in each.misplaced.items()), counts)
    return {name: _without_copies(each, known, extra) for name, each in found.items()}


def _looked_at(chunk: Chunk, before: Shown | None) -> Shown:
    """What is known of the chunk alone; the rows of one not seen before are not made yet."""
    if before is not None and before.chunk is chunk:
        return before
    sweeps, candidates = twins.sweeps(chunk.runs), twins.asked(chunk.measurements)
    nothing = chunk.measurements.clear()
    misplaced = doubles.misplaced(chunk.runs)
    return Shown(chunk, sweeps, candidates, None, nothing, nothing, chunk.runs, misplaced)


def _without_copies(shown: Shown, known: frozenset[twins.Sweep], extra: Mapping[str, str]) -> Shown:
    copies = twins.copies(shown.candidates, known)
    mine = {file: extra[file] for file in shown.misplaced if file in extra}
    if shown.copies is not None and copies.equals(shown.copies) and mine == shown.doubles:
        return shown
    measurements, newest, runs = shown.chunk.measurements, shown.chunk.latest, shown.chunk.runs
    if mine:
        counted = ~pl.col("source").cast(pl.String).is_in(sorted(mine))
        measurements, runs = measurements.filter(counted), runs.filter(counted)
    if not copies.is_empty() or mine:
        measurements = twins.without(measurements, copies)
        newest = latest(measurements)
    return dataclasses.replace(shown, copies=copies, measurements=measurements, latest=newest, runs=runs, doubles=mine)
