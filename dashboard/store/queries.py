"""Questions to the frames: pure functions, frames in, frames out.

``metric`` is a name in ``schema.METRICS``. A row without a positive finite value of the metric is kept wherever a
reader must see that it is missing, and never enters a ratio or a mean.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from dashboard.store.schema import METRICS, SERIES
from groundspeed.analysis.speedup import BASELINE

Axis = Literal["implementation", "machine", "commit", "run_id", "environment"]

BY_ROUNDS = "device_cold"  # the metric of which speedup_eager is the speedup
_AT_ONCE = 200_000  # rows grouped in one go: a million cost hundreds of megabytes for a moment
_NEWER = ("at", "started", "run_id")  # at: the commit's time, or the start where there is none


@dataclass(frozen=True)
class Comparison:
    """Two selections over the cases that both have.

    ``frame`` has one row a shared key: the key's columns, left, left_low, left_high, right, right_low, right_high,
    ratio (left / right where lower is better, else right / left: above 1 the right side is better; over torch_eager of
    the same record the one that the rounds give, as ``speedup`` has it), significant (the
    99 % intervals do not touch; null without intervals), left_source, right_source. ``only_left`` and ``only_right``
    count the keys with a value on one side alone.
    """

    frame: pl.DataFrame
    only_left: int
    only_right: int


def latest(measurements: pl.DataFrame) -> pl.DataFrame:
    """The newest row of every series: by the commit's time (the start where there is none), then by the start."""
    return measurements[newest_rows(measurements)]


def newest_rows(measurements: pl.DataFrame) -> pl.Series:
    """The positions, ascending, of the rows that ``latest`` takes."""
    marks = measurements.select(
        *SERIES, pl.coalesce("commit_time", "started").alias("at"), "started", "run_id"
    ).with_row_index("row")
    if marks.height > _AT_ONCE:
        marks = pl.concat([_newest(marks.slice(at, _AT_ONCE)) for at in range(0, marks.height, _AT_ONCE)])
    return _newest(marks)["row"].sort()


def _newest(marks: pl.DataFrame) -> pl.DataFrame:
    """The last row of every series by _NEWER."""
    return marks.sort(_NEWER, nulls_last=False).group_by(SERIES).last()


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
    the same keys: the rest of the series. Over implementations, the baseline of the same run is preferred
    (paired = True: same rounds), else the series' newest is taken (paired = False), unless its case was another one
    (case_digest): nothing is compared across a change of what is computed. Over other axes the newest is taken, and
    paired is False. ``speedup`` above 1 is better, whichever way the metric goes; null where one side has
    no value, and then paired is null.

    It is the ratio of the two values; of cold device time over torch_eager of the same run it is the one that the
    record's rounds give (column speedup_eager), as in ``groundspeed.analysis.speedup``.
    """
    source = frame if reference is None else reference
    keys = [key for key in SERIES if key != axis]
    base = source.filter(pl.col(axis) == baseline, _usable(metric))
    newest = latest(base).select(
        *keys, pl.col(metric).cast(pl.Float64).alias("newest"), pl.col("case_digest").alias("newest_case")
    )
    newest = newest.unique(keys, keep="last", maintain_order=True)
    joined = frame.join(newest, on=keys, how="left", maintain_order="left")
    if axis == "implementation":
        same_case = pl.col("newest_case").cast(pl.String).eq_missing(pl.col("case_digest").cast(pl.String))
        joined = joined.with_columns(newest=pl.when(same_case).then("newest"))
        same_run = [*keys, "run_id"]
        paired = base.select(*same_run, pl.col(metric).cast(pl.Float64).alias("same")).unique(same_run, keep="last")
        joined = joined.join(paired, on=same_run, how="left", maintain_order="left")
    else:
        joined = joined.with_columns(same=pl.lit(None, pl.Float64))
    value = pl.when(_usable(metric)).then(pl.col(metric).cast(pl.Float64))
    ratio = _better(pl.col("baseline_value"), value, metric)
    if axis == "implementation" and _by_rounds(baseline, metric):
        together = pl.when(pl.col("same").is_not_null() & _usable(metric)).then(pl.col("speedup_eager"))
        ratio = pl.coalesce(together, ratio)
    return (
        joined.with_columns(baseline_value=pl.coalesce("same", "newest"))
        .with_columns(speedup=ratio)
        .with_columns(paired=pl.when(pl.col("speedup").is_not_null()).then(pl.col("same").is_not_null()))
        .drop("same", "newest", "newest_case")
    )


def geomean(
    frame: pl.DataFrame, by: Sequence[str] = ("implementation",), value: str = "speedup", *, common: bool = False
) -> pl.DataFrame:
    """Geometric mean of ``value`` by group: columns by..., geomean, k, n, sorted by group.

    n counts the cases (the columns of a series that are not in ``by``) seen in the whole frame, k those in which the
    group has a positive value. ``common`` keeps only cases in which every group has one, so that the means may be
    set beside each other.
    """
    case = [key for key in SERIES if key not in by and key != "implementation"]
    good = frame.filter(pl.col(value).is_finite(), pl.col(value) > 0)
    groups = frame.select(by).unique()
    if common:
        shared = good.group_by(case).agg(pl.struct(by).n_unique().alias("groups"))
        good = good.join(shared.filter(pl.col("groups") == groups.height), on=case, how="semi")
    means = good.group_by(by).agg(
        pl.col(value).cast(pl.Float64).log().mean().exp().alias("geomean"),
        pl.struct(case).n_unique().cast(pl.Int64).alias("k"),
    )
    n = frame.select(case).unique().height
    joined = groups.join(means, on=list(by), how="left")
    return joined.with_columns(pl.col("k").fill_null(0), n=pl.lit(n, pl.Int64)).sort(by)


def history(frame: pl.DataFrame, runs: pl.DataFrame | None = None) -> pl.DataFrame:
    """Rows of one or more series in order of commits, with columns ordinal, case_changed, environment_changed.

    ``ordinal`` counts the distinct commits (runs, where there is no commit) of the frame from 0, oldest first.
    ``case_changed`` marks the first row of a series after its case digest changed: not comparable across.
    ``environment_changed`` names the fields that differ from the series' row before ("driver, torch"); "" without
    ``runs``.
    """
    rows = frame.with_columns(
        at=pl.coalesce("commit_time", "started"),
        point=pl.when(pl.col("commit") == "").then(pl.col("run_id")).otherwise(pl.col("commit")),
    ).sort(_NEWER, nulls_last=False)
    points = rows.group_by("point", maintain_order=True).agg(pl.len()).with_row_index("ordinal").drop("len")
    rows = rows.join(points, on="point", how="left", maintain_order="left").with_columns(case_changed=_case_changed())
    return rows.with_columns(environment_changed=_environment_changes(rows, runs)).drop("at", "point")


def _case_changed() -> pl.Expr:
    """Whether the digest differs from the series' row before; old asv files have none, which tells nothing."""
    now, before = pl.col("case_digest"), pl.col("case_digest").shift(1).over(SERIES)
    return ((now != before) & (now != "") & (before != "")).fill_null(False)


def _environment_changes(rows: pl.DataFrame, runs: pl.DataFrame | None) -> pl.Series:
    """By row, the names of the environment's fields that differ from those of the series' row before."""
    if runs is None or rows.is_empty():
        return pl.Series([""], dtype=pl.String).new_from_index(0, rows.height)
    mine = rows.select("source").unique()
    details = runs.select("source", pl.col("details").alias("now")).join(mine, on="source", how="semi")
    known = rows.select("source", *SERIES).join(
        details.unique("source"), on="source", how="left", maintain_order="left"
    )
    pairs = known.select("now", pl.col("now").shift(1).over(SERIES).alias("before"))
    moved = pairs.filter(pl.col("now") != pl.col("before")).unique()
    names = [", ".join(differing_fields(before, now)) for now, before in moved.iter_rows()]
    answers = moved.with_columns(pl.Series("names", names, pl.String))
    return pairs.join(answers, on=["now", "before"], how="left", maintain_order="left")["names"].fill_null("")


def differing_fields(before: str, now: str) -> list[str]:
    """The names under which two JSON objects of ``runs.details`` differ, sorted; a missing field differs from any."""
    if before == now:
        return []
    one, other = (_object(text) for text in (before, now))
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def compare(left: pl.DataFrame, right: pl.DataFrame, metric: str = "device_cold", *, axis: Axis) -> Comparison:
    """Two selections that differ along ``axis``, joined on every other key; each side's newest row counts."""
    keys = [key for key in SERIES if key != axis]
    one, other = (_side(frame, keys, metric, name) for frame, name in ((left, "left"), (right, "right")))
    joined = one.join(other, on=keys, how="inner", maintain_order="left")
    ratio = _better(pl.col("left"), pl.col("right"), metric)
    frame = joined.with_columns(
        ratio=pl.coalesce(_rounds_ratio(), ratio) if axis == "implementation" and metric == BY_ROUNDS else ratio,
        significant=(pl.col("left_high") < pl.col("right_low")) | (pl.col("right_high") < pl.col("left_low")),
    )
    columns = [f"{side}{part}" for side in ("left", "right") for part in ("", "_low", "_high")]
    frame = frame.select(*keys, *columns, "ratio", "significant", "left_source", "right_source")
    return Comparison(frame, one.height - frame.height, other.height - frame.height)


def _by_rounds(baseline: str, metric: str) -> bool:
    """Whether speedups are stored that the rounds of a record give."""
    return baseline == BASELINE and metric == BY_ROUNDS


def _rounds_ratio() -> pl.Expr:
    """Of two sides from one record, one of them the baseline: the ratio that its rounds give; null otherwise."""
    together = pl.col("left_source").cast(pl.String) == pl.col("right_source").cast(pl.String)
    return (
        pl.when(together & (pl.col("left_implementation") == BASELINE))
        .then(pl.col("right_speedup"))
        .when(together & (pl.col("right_implementation") == BASELINE))
        .then(1 / pl.col("left_speedup"))
    )


def _side(frame: pl.DataFrame, keys: Sequence[str], metric: str, name: str) -> pl.DataFrame:
    """The newest usable row of every key: keys, value, interval, source, what the rounds tell; the left's direction."""
    about = METRICS[metric]
    rows = latest(frame.filter(_usable(metric))).unique(keys, keep="last", maintain_order=True)
    low, high = (pl.col(end).cast(pl.Float64) if end else pl.lit(None, pl.Float64) for end in (about.low, about.high))
    return rows.select(
        *keys,
        pl.col(metric).cast(pl.Float64).alias(name),
        low.alias(f"{name}_low"),
        high.alias(f"{name}_high"),
        pl.col("source").alias(f"{name}_source"),
        pl.col("implementation").cast(pl.String).alias(f"{name}_implementation"),
        pl.col("speedup_eager").alias(f"{name}_speedup"),
        *([pl.col("direction")] if name == "left" else []),
    )


def best_by_size(measurements: pl.DataFrame, operator: str, metric: str = "device_cold") -> pl.DataFrame:
    """The winner of every case of one operator, by machine, dtype and size.

    Columns machine, dtype, shape, facets, bytes, flops, implementation, value, second, second_value, margin (how many
    times better than the second, from 1 up), tie (the two 99 % intervals touch; null where one is not known). The
    second's columns are null where only one implementation has a value; cases with no value at all are left out.
    Sorted by machine, dtype and bytes.
    """
    about, group = METRICS[metric], ["machine", "environment", "dtype", "shape"]
    rows = latest(measurements.filter(pl.col("operator") == operator)).filter(_usable(metric))
    ends = [pl.col(end).cast(pl.Float64) if end else pl.lit(None, pl.Float64) for end in (about.low, about.high)]
    ranked = rows.select(
        *group,
        "facets",
        "bytes",
        "flops",
        "implementation",
        "direction",
        pl.col(metric).cast(pl.Float64).alias("value"),
        ends[0].alias("low"),
        ends[1].alias("high"),
    ).sort("value", descending=about.direction == "higher", maintain_order=True)
    best = ranked.group_by(group, maintain_order=True).agg(
        pl.col("facets", "bytes", "flops", "implementation", "direction", "value", "low", "high").first(),
        *(
            pl.col(name).get(1, null_on_oob=True).alias(f"second_{name}")
            for name in ("implementation", "value", "low", "high")
        ),
    )
    return (
        best.with_columns(
            second=pl.col("second_implementation"),
            margin=_better(pl.col("second_value"), pl.col("value"), metric),
            tie=(pl.col("low") <= pl.col("second_high")) & (pl.col("second_low") <= pl.col("high")),
        )
        .select(
            "machine",
            "dtype",
            "shape",
            "facets",
            "bytes",
            "flops",
            "implementation",
            "value",
            "second",
            "second_value",
            "margin",
            "tie",
        )
        .sort("machine", "dtype", "bytes", "shape", nulls_last=False)
    )


def _usable(metric: str) -> pl.Expr:
    """Rows whose value may enter a ratio."""
    return (pl.col("status") == "ok") & pl.col(metric).is_finite() & (pl.col(metric) > 0)


def _better(reference: pl.Expr, value: pl.Expr, metric: str) -> pl.Expr:
    """How many times better ``value`` is than ``reference``; a foreign value says its own direction by row."""
    if metric == "value":
        return pl.when(pl.col("direction") == "higher").then(value / reference).otherwise(reference / value)
    return value / reference if METRICS[metric].direction == "higher" else reference / value


def _object(text: str) -> dict[str, object]:
    parsed = json.loads(text) if text else {}
    return parsed if isinstance(parsed, dict) else {}
