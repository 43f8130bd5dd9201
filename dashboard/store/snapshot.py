"""What the store knew at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from dashboard.store.schema import MACHINES, MEASUREMENTS, PROBLEMS, RUNS, empty


@dataclass(frozen=True)
class Snapshot:
    """Frames that never change. ``version`` differs whenever any of them does: a cache key for what is made of them."""

    results: Path
    version: str
    measurements: pl.DataFrame
    runs: pl.DataFrame
    machines: pl.DataFrame
    problems: pl.DataFrame


def empty_snapshot(results: Path) -> Snapshot:
    """The snapshot of a folder not read yet."""
    return Snapshot(results, "", empty(MEASUREMENTS), empty(RUNS), empty(MACHINES), empty(PROBLEMS))
