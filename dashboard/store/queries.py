"""Questions to the frames: pure functions, frames in, frames out.

``metric`` is a name in ``schema.METRICS``. A row without a finite value of the metric is kept wherever a reader must
see that it is missing, and never enters a mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

Axis = Literal["implementation", "machine", "commit", "run_id", "environment"]


@dataclass(frozen=True)
class Comparison:
    """Two selections over the cases that both have.

    ``frame`` has one row a shared key: the key's columns, left, left_low, left_high, right, right_low, right_high,
    ratio (left / right for a metric where lower is better, else right / left: above 1 the right side is better),
    significant (the 99 % intervals do not touch; null without intervals), left_source, right_source.
    """

    frame: pl.DataFrame
    only_left: int
    only_right: int


def latest(measurements: pl.DataFrame) -> pl.DataFrame:
    """The newest row of every series: by the commit's time (the start where there is none), then by the start."""
    raise NotImplementedError


def speedup(
    frame: pl.DataFrame,
    baseline: str,
    metric: str = "device_cold",
    *,
    axis: Axis = "implementation",
    reference: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """``frame`` with columns baseline_value, speedup and paired.

    ``baseline`` is a value of the ``axis`` column. Its rows are looked up in ``reference`` (``frame`` when None) under
    the same keys; over implementations the same run is preferred (paired = True: same rounds), else the newest
    baseline of the series is taken (paired = False). ``speedup`` above 1 is better in either direction of the metric;
    null where one side has no value.
    """
    raise NotImplementedError


def geomean(
    frame: pl.DataFrame, by: Sequence[str] = ("implementation",), value: str = "speedup", *, common: bool = False
) -> pl.DataFrame:
    """Geometric mean of ``value`` by group: columns by..., geomean, k, n.

    n counts the cases (machine, operator, dtype, shape) seen in the whole frame, k those in which the group has a
    value. ``common`` keeps only cases in which every group has one, so that the means may be set beside each other.
    """
    raise NotImplementedError


def history(frame: pl.DataFrame, runs: pl.DataFrame | None = None) -> pl.DataFrame:
    """Rows of one or more series in order of commits, with columns ordinal, case_changed, environment_changed.

    ``ordinal`` counts the distinct commits of the frame from 0, oldest first. ``case_changed`` marks the first row of
    a series after its case digest changed (a new series: not comparable across). ``environment_changed`` names the
    fields that differ from the row before ("driver, torch"); "" without ``runs``.
    """
    raise NotImplementedError


def compare(left: pl.DataFrame, right: pl.DataFrame, metric: str = "device_cold", *, axis: Axis) -> Comparison:
    """Two selections that differ along ``axis``, joined on every other key; each side's newest row counts."""
    raise NotImplementedError


def best_by_size(measurements: pl.DataFrame, operator: str, metric: str = "device_cold") -> pl.DataFrame:
    """The winner of every case of one operator, by machine, dtype and size.

    Columns machine, dtype, shape, facets, bytes, flops, implementation, value, second, second_value, margin
    (second / best, above 1), tie (the two 99 % intervals touch). Cases with no value at all are left out.
    """
    raise NotImplementedError
