"""Chunks as a snapshot shows them: without copies, asv's of our own records and of files, and with their newest rows
picked out.

Both are kept from one snapshot to the next, so that a refresh costs what is new and not what is there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl

from dashboard.store import doubles, twins
from dashboard.store.chunks import Chunk, latest_of


@dataclass(frozen=True)
class Shown:
    """``candidates`` and ``copies`` are what dashboard.store.twins found in the chunk, ``misplaced`` and ``doubles``
    what dashboard.store.doubles did: files in another place than theirs, and those of them not counted.

    ``counted`` is the chunk without the doubles; its rows without ``copies`` are those shown, ``height`` of them.
    """

    chunk: Chunk
    counted: Chunk
    latest: pl.DataFrame
    height: int
    candidates: pl.DataFrame | None = None  # None: not looked for yet
    copies: pl.DataFrame | None = None
    misplaced: Mapping[str, str] = field(default_factory=dict)
    doubles: Mapping[str, str] = field(default_factory=dict)

    @property
    def runs(self) -> pl.DataFrame:
        return self.counted.runs

    def rows(
        self, machine: str = "", project: str = "", operator: str = "", commits: Collection[str] = ()
    ) -> pl.LazyFrame | None:
        """Its rows of these, each "" (and none) for all; None where it has none, which is known without reading."""
        if not any(_fits(partition, machine, project, operator) for partition in self.counted.partitions):
            return None
        asked = {"machine": machine, "project": project}
        wanted = [pl.col(name) == value for name, value in asked.items() if value]
        if commits:
            wanted.append(pl.col("commit").is_in(sorted(commits)))
        runs = self.runs.filter(wanted) if wanted else self.runs
        if runs.is_empty():
            return None
        rows = self.counted.rows(runs if runs.height < self.runs.height else None)
        if operator:
            rows = rows.filter(pl.col("operator") == operator)
        return rows if self.copies is None else twins.without(rows, self.copies)


def _fits(partition: tuple[str, str, str], machine: str, project: str, operator: str) -> bool:
    its = zip(partition, (machine, project, operator), strict=True)
    return all(not asked or has in ("", asked) for has, asked in its)


def show(chunks: Iterable[Chunk], before: Mapping[str, Shown], counts: Callable[[str], bool]) -> dict[str, Shown]:
    """Every chunk by name; from ``before`` where nothing changed for it. ``counts`` says whether a file has rows."""
    found = {chunk.name: _looked_at(chunk, before.get(chunk.name)) for chunk in chunks}
    extra = doubles.doubles((pair for each in found.values() for pair in each.misplaced.items()), counts)
    known = twins.sweeps(each.chunk.runs for each in found.values()) if any(map(_has_asv, found.values())) else None
    return {name: _without_copies(each, known, extra) for name, each in found.items()}


def _looked_at(chunk: Chunk, before: Shown | None) -> Shown:
    """What is known of the chunk alone."""
    if before is not None and before.chunk is chunk:
        return before
    return Shown(chunk, chunk, chunk.latest, chunk.height, misplaced=doubles.misplaced(chunk.runs))


def _has_asv(shown: Shown) -> bool:
    return any(project == "asv" for _, project, _ in shown.chunk.partitions)


def _without_copies(shown: Shown, known: pl.DataFrame | None, extra: Mapping[str, str]) -> Shown:
    mine = {file: extra[file] for file in shown.misplaced if file in extra}
    candidates, copies = shown.candidates, None
    if known is not None and _has_asv(shown):
        if candidates is None and twins.may_hold(shown.chunk.runs, known):
            candidates = twins.asked(shown.chunk.rows())
        found = None if candidates is None else twins.copies(candidates, known)
        copies = None if found is None or found.is_empty() else found
    if mine == shown.doubles and _same(copies, shown.copies):
        return dataclasses.replace(shown, candidates=candidates) if candidates is not shown.candidates else shown
    counted = shown.chunk.without(mine)
    if copies is None:
        latest, height = counted.latest, counted.height
    else:
        rows = twins.without(counted.rows(), copies)
        latest, height = latest_of(rows), int(rows.select(pl.len()).collect().item())
    return Shown(shown.chunk, counted, latest, height, candidates, copies, shown.misplaced, mine)


def _same(one: pl.DataFrame | None, other: pl.DataFrame | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.equals(other)
