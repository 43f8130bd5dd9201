"""What the store knew at one moment, and how it is put together from chunks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from dashboard.store.queries import latest
from dashboard.store.schema import MACHINES, MEASUREMENTS, PROBLEMS, RUNS, empty


@dataclass(frozen=True)
class Snapshot:
    """Frames that never change. ``version`` differs whenever any of them does: a cache key for what is made of them.

    ``latest`` is ``queries.latest(measurements)``, made while refreshing: a page over today's state starts from it
    instead of grouping a million rows. A filter on anything but time, commit or run gives the same before and after.
    """

    results: Path
    version: str
    measurements: pl.DataFrame
    latest: pl.DataFrame
    runs: pl.DataFrame
    machines: pl.DataFrame
    problems: pl.DataFrame


def empty_snapshot(results: Path) -> Snapshot:
    """The snapshot of a folder not read yet."""
    rows = empty(MEASUREMENTS)
    return Snapshot(results, "", rows, rows, empty(RUNS), empty(MACHINES), empty(PROBLEMS))


def assemble(
    results: Path,
    chunks: Iterable[tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]],
    machines: Mapping[str, Mapping[str, Any]],
    problems: Mapping[str, str],
    contents: object,
) -> Snapshot:
    """A snapshot of chunks, each (measurements, its latest, runs); ``contents`` is what the version is made of."""
    every = list(chunks)
    runs = _joined((runs for _, _, runs in every), RUNS)
    return Snapshot(
        results=results,
        version=hashlib.blake2b(repr(contents).encode(), digest_size=8).hexdigest(),
        measurements=_joined((rows for rows, _, _ in every), MEASUREMENTS),
        latest=latest(_joined((newest for _, newest, _ in every), MEASUREMENTS)),
        runs=runs,
        machines=_machines(runs, machines),
        problems=pl.DataFrame(sorted(problems.items()), schema=PROBLEMS, orient="row"),
    )


def _joined(frames: Iterable[pl.DataFrame], schema: dict[str, pl.DataType]) -> pl.DataFrame:
    """The frames one after the other, without copying them."""
    return pl.concat([empty(schema), *frames], rechunk=False)


def _machines(runs: pl.DataFrame, described: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """Machines that have runs, with machine.json or, without one, what the newest run says of where it ran."""
    newest = (
        runs.sort("started", nulls_last=False)
        .group_by("machine")
        .agg(
            pl.col("details").last(),
            pl.col("source").n_unique().alias("runs"),
            pl.col("rows").sum(),
            pl.col("started").min().alias("first"),
            pl.col("started").max().alias("last"),
        )
    )
    written = {str(document["machine"]): json.dumps(document, default=str) for document in described.values()}
    details = [written.get(machine, of_run) for machine, of_run in newest.select("machine", "details").iter_rows()]
    return (
        newest.with_columns(pl.Series("details", details, pl.String))
        .select([pl.col(name).cast(dtype) for name, dtype in MACHINES.items()])
        .sort("machine")
    )
