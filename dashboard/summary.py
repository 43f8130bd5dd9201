"""Summaries that pages show: pure functions from frames of the store to small frames."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from dashboard.components.palette import BASELINE
from dashboard.store import CASE, SERIES

ALONE = ("torch_compile",)  # implementations with a column of their own; the rest go by back end
ORDER = ("torch", "torch_compile", "triton", "cuda", "cupy")


def speedups_by(speedups: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Geometric mean of speedup by group: columns by..., geomean, k, n, failed, skipped, unstable.

    n counts the cases of the group's operators that the frame holds, k those in which the group has a speedup.
    """
    within = [name for name in by if name == "operator"]
    cases = speedups.select(CASE).unique()
    total = cases.group_by(within).len("n") if within else cases.select(pl.len().alias("n"))
    groups = speedups.group_by(by).agg(
        pl.col("speedup").log().mean().exp().alias("geomean"),
        pl.col("speedup").count().alias("k"),  # rows are series: one an implementation and case
        (pl.col("status") == "failed").sum().alias("failed"),
        (pl.col("status") == "skipped").sum().alias("skipped"),
        (pl.col("unstable").cast(pl.String) != "").sum().alias("unstable"),
    )
    return groups.join(total, on=within, how="left") if within else groups.join(total, how="cross")


def best_by_case(speedups: pl.DataFrame, extra: Sequence[str] = ()) -> pl.DataFrame:
    """The row with the highest speedup of every case (and of every value of ``extra``)."""
    return (
        speedups.filter(pl.col("speedup").is_not_null())
        .sort("speedup", descending=True)
        .unique([*CASE, *extra], keep="first", maintain_order=True)
    )


def since_previous(everything: pl.LazyFrame, metric: str, low: str, high: str, direction: str) -> pl.DataFrame:
    """Every series' newest value beside the one of the commit before it.

    Columns of the newest row, previous, previous_commit, ratio (above 1 is better, in either direction) and
    significant (the 99 % intervals do not touch; null without intervals). Series whose case changed are left out.
    """
    bounds = [name for name in (low, high) if name]
    columns = [
        *SERIES,
        "case_digest",
        "run_id",
        "commit",
        "commit_time",
        "started",
        "unit",
        "direction",
        metric,
        *bounds,
    ]
    ordered = (
        everything.select(columns)
        .filter(pl.col(metric).is_finite())
        .with_columns(pl.coalesce("commit_time", "started").alias("at"))
        .sort("at", "started")
        .unique([*SERIES, "commit"], keep="last", maintain_order=True)
    )
    before = [pl.col(name).shift(1).over(SERIES).alias(f"previous_{name}") for name in (metric, *bounds)]
    paired = ordered.with_columns(
        *before,
        pl.col("commit").shift(1).over(SERIES).alias("previous_commit"),
        (pl.col("case_digest") != pl.col("case_digest").shift(1).over(SERIES)).alias("changed"),
    ).unique(SERIES, keep="last", maintain_order=True)
    up = pl.lit(direction == "higher") if metric != "value" else pl.col("direction") == "higher"
    ratio = pl.col(f"previous_{metric}") / pl.col(metric)
    significant = (
        (pl.col(low) > pl.col(f"previous_{high}")) | (pl.col(high) < pl.col(f"previous_{low}"))
        if low and high
        else pl.lit(None, dtype=pl.Boolean)
    )
    return (
        paired.filter(pl.col(f"previous_{metric}").is_finite() & ~pl.col("changed"))
        .with_columns(
            pl.when(up).then(1 / ratio).otherwise(ratio).alias("ratio"),
            significant.alias("significant"),
            pl.col(f"previous_{metric}").alias("previous"),
        )
        .filter(pl.col("ratio").is_finite())
        .collect()
    )


def columns_of(implementations: Sequence[str], grouped: bool) -> dict[str, tuple[str, ...]]:
    """Columns of the overview's matrix: each implementation, or each back end with its implementations."""
    columns: dict[str, list[str]] = {}
    for name in implementations:
        columns.setdefault(_group(name) if grouped else name, []).append(name)
    ranked = sorted(columns, key=lambda column: (_rank(columns[column][0]), column != BASELINE, column))
    return {column: tuple(columns[column]) for column in ranked}


def _group(implementation: str) -> str:
    return implementation if implementation in ALONE else implementation.partition("_")[0]


def _rank(implementation: str) -> int:
    group = _group(implementation)
    return ORDER.index(group) if group in ORDER else len(ORDER)
