"""What the store knew at one moment, and how it is put together from chunks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from dashboard.store.queries import latest
from dashboard.store.schema import MACHINES, MEASUREMENTS, PROBLEMS, RUNS, empty
from dashboard.store.shown import Shown


@dataclass(frozen=True)
class Snapshot:
    """Frames that never change. ``version`` differs whenever any of them does: a cache key for what is made of them.

    ``latest`` is ``queries.latest`` of all measurements, made while refreshing: a page over today's state starts from
    it. A filter on anything but time, commit or run gives the same before and after. The measurements themselves, of
    which there may be more than fit into memory, are had through ``of``.
    """

    results: Path
    version: str
    rows: int  # measurements there are
    latest: pl.DataFrame
    runs: pl.DataFrame
    machines: pl.DataFrame
    problems: pl.DataFrame
    shown: tuple[Shown, ...] = ()

    def of(
        self, machine: str = "", project: str = "", operator: str = "", commits: Collection[str] = ()
    ) -> pl.LazyFrame:
        """Measurements of these, each "" (and no commits) for all. What is named here is not even read of others.

        A further filter, and a choice of columns, spare what they leave out: collect what is needed, not more.
        """
        parts = (each.rows(machine, project, operator, commits) for each in self.shown)
        return pl.concat([empty(MEASUREMENTS).lazy(), *(part for part in parts if part is not None)], rechunk=False)

    @cached_property
    def measurements(self) -> pl.DataFrame:
        """Every measurement, in memory: for stores of which one knows that they are small."""
        return self.of().collect()

    def intact(self) -> bool:
        """Whether what its rows are read from is still there: another process may have replaced it."""
        return all(each.chunk.path is None or each.chunk.path.exists() for each in self.shown)


def empty_snapshot(results: Path) -> Snapshot:
    """The snapshot of a folder not read yet."""
    return Snapshot(results, "", 0, empty(MEASUREMENTS), empty(RUNS), empty(MACHINES), empty(PROBLEMS))


def assemble(
    results: Path,
    shown: Iterable[Shown],
    machines: Mapping[str, Mapping[str, Any]],
    problems: Mapping[str, str],
    contents: object,
) -> Snapshot:
    """A snapshot of chunks as they are shown; ``contents`` is what else the version is made of."""
    every = tuple(shown)
    mark = sum(each.chunk.mark for each in every)
    runs = _joined((each.runs for each in every), RUNS)
    return Snapshot(
        results=results,
        version=hashlib.blake2b(repr((mark, contents)).encode(), digest_size=8).hexdigest(),
        rows=sum(each.height for each in every),
        latest=latest(_joined((each.latest for each in every), MEASUREMENTS)),
        runs=runs,
        machines=_machines(runs, machines),
        problems=pl.DataFrame(sorted(problems.items()), schema=PROBLEMS, orient="row"),
        shown=every,
    )


def _joined(frames: Iterable[pl.DataFrame], schema: dict[str, pl.DataType]) -> pl.DataFrame:
    """The frames one after the other, without copying them."""
    return pl.concat([empty(schema), *(frame.select(list(schema)) for frame in frames)], rechunk=False)


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
