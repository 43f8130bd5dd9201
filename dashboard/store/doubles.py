"""A record file that lies under results/ twice: its rows must not count twice.

A record has one place, made of its own header. A file anywhere else (a copy, a folder that was renamed) counts unless
the one in its place is there, or another copy that comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import polars as pl

from dashboard.store.files import RECORD_SUFFIX


def place_of(machine: str, run_id: str, operator: str) -> str:
    """Where records.record_path keeps such a record, relative to the results folder."""
    return f"{machine}/records/{run_id}/{operator}{RECORD_SUFFIX}"


def misplaced(runs: pl.DataFrame) -> dict[str, str]:
    """Of a chunk's runs the files that lie elsewhere than in their place: file -> place."""
    columns = pl.col("source", "machine", "run_id", "operator").cast(pl.String)
    found = runs.filter(pl.col("misplaced")).select(columns)
    return {source: place_of(machine, run_id, operator) for source, machine, run_id, operator in found.iter_rows()}


def doubles(elsewhere: Iterable[tuple[str, str]], counts: Callable[[str], bool]) -> dict[str, str]:
    """The files that are not counted, and the file that is in their stead. ``counts`` says whether a place has rows."""
    first: dict[str, str] = {}
    found: dict[str, str] = {}
    for file, place in sorted(elsewhere):
        counted = place if counts(place) else first.setdefault(place, file)
        if counted != file:
            found[file] = counted
    return found
