"""Results on disk, read once into columnar frames: the dashboard's only way to data. No Dash and no torch here.

>>> store = open_store(Path("results"))
>>> store.refresh()          # reads new and changed files only; True when anything changed
>>> frames = store.snapshot  # immutable: hold it for the length of one answer
>>> frames.measurements, frames.latest, frames.runs, frames.machines, frames.problems

``dashboard.store.queries`` asks the frames; ``samples_of`` opens the one file behind a row.
"""

from __future__ import annotations

from dashboard.store.samples import Samples, samples_of
from dashboard.store.schema import (
    CASE,
    MACHINES,
    MEASUREMENTS,
    METRICS,
    PROBLEMS,
    RUNS,
    SERIES,
    Direction,
    Metric,
    Project,
)
from dashboard.store.snapshot import Snapshot
from dashboard.store.store import Store, open_store

__all__ = [
    "CASE",
    "MACHINES",
    "MEASUREMENTS",
    "METRICS",
    "PROBLEMS",
    "RUNS",
    "SERIES",
    "Direction",
    "Metric",
    "Project",
    "Samples",
    "Snapshot",
    "Store",
    "open_store",
    "samples_of",
]
