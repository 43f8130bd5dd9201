"""The charts of an operator: value against size, and latency against throughput over the batch."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import polars as pl

from dashboard.components import numbers, table
from dashboard.components.curves import BatchPoint, SizePoint, latency_against_throughput, time_against_size
from dashboard.components.figure import chart
from dashboard.pages.links import samples_link
from dashboard.view import View, metric_on

FEWEST_BATCHES = 3
Twin = Callable[[str, list[dict[str, Any]]], Any]


def in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """Cases by dtype, then by size; a case whose rows were all skipped has no size and goes last."""
    size = pl.col("bytes").max().over("dtype", "shape").fill_null(math.inf)
    return frame.with_columns(
        size.alias("case_size"), pl.col("dtype").cast(pl.String), pl.col("shape").cast(pl.String)
    ).sort("dtype", "case_size", "shape")


def size_chart(view: View, shown: pl.DataFrame, order: list[str], twin: Twin) -> Any:
    """The metric against the bytes of a call, in one dtype; None without a value. ``order`` is the legend's."""
    dtype, rows = _in_one_dtype(view, shown.filter(pl.col(view.metric.name).is_finite() & (pl.col("bytes") > 0)))
    if not rows:
        return None
    rows.sort(key=lambda row: order.index(row["implementation"]))
    points = [
        SizePoint(
            row["implementation"],
            row["bytes"],
            row[view.metric.name],
            row.get(view.metric.low),
            row.get(view.metric.high),
            row["shape"],
            samples_link(view, row),
            row["n"],
            row["speedup"],
            bool(row["unstable"]),
            row["commit"],
        )
        for row in rows
    ]
    return chart(
        "size",
        f"{view.metric.label} against size, {dtype}",
        time_against_size(points, view.metric, view.unit, view.baseline),
        twin(dtype, rows),
        "Size is the bytes one call must move: inputs read once, outputs written once. Bars are 99 % intervals, open "
        "markers have a wide one. A point opens its samples.",
    )


def batch_chart(view: View, shown: pl.DataFrame, order: list[str]) -> Any:
    """Latency against throughput, one line an implementation over growing batches; None where no batch grows."""
    ok = shown.filter(pl.col("device_cold").is_finite() & pl.col("items_per_s").is_finite())
    dtype, rows = _in_one_dtype(view, ok)
    batch, same, rows = growing_batch(rows)
    if not batch:
        return None
    rows.sort(key=lambda row: order.index(row["implementation"]))
    points = [
        BatchPoint(
            row["implementation"],
            row["items"],
            row["items_per_s"],
            row["device_cold"],
            row["shape"],
            samples_link(view, row),
        )
        for row in rows
    ]
    latency = metric_on(view.device, "device_cold").label
    columns = [
        table.text("Implementation", "implementation"),
        table.number("Items a call", "items", numbers.significant),
        table.number("Throughput", "items_per_s", lambda v: numbers.quantity(v, "1/s"), csv="items_per_s", large=True),
        table.number("Latency", "device_cold", lambda v: numbers.quantity(v, "s"), csv="device_cold_s"),
    ]
    return chart(
        "batch",
        f"Latency against throughput over {batch}, {dtype}{', ' if same else ''}{same}",
        latency_against_throughput(points, latency),
        table.table(f"batch-{dtype}", columns, rows),
        f"{latency}, of one call against items a second; each line goes from the smallest batch to the "
        "largest. Where it turns upwards, a larger batch costs latency and brings no throughput.",
    )


def growing_batch(rows: list[dict[str, Any]]) -> tuple[str, str, list[dict[str, Any]]]:
    """The dimension that items are proportional to, the other dimensions in words, and the rows that share them.

    Of several groups of other dimensions the one with the most batches is taken, then the last; ("", "", []) where no
    dimension grows at least three times.
    """
    dims = [json.loads(row["facets"]) for row in rows]
    for name in dims[0] if dims else ():
        sizes = [dim.get(name) for dim in dims]
        if not all(isinstance(size, int) and size > 0 and row["items"] for size, row in zip(sizes, rows, strict=True)):
            continue
        if len({round(row["items"] / size, 9) for size, row in zip(sizes, rows, strict=True)}) > 1:
            continue
        groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for dim, row in zip(dims, rows, strict=True):
            groups[", ".join(f"{key}={value}" for key, value in dim.items() if key != name)].append(row)
        same = max(groups, key=lambda key: len({row["items"] for row in groups[key]}))
        if len({row["items"] for row in groups[same]}) >= FEWEST_BATCHES:
            return name, same, sorted(groups[same], key=lambda row: row["items"])
    return "", "", []


def _in_one_dtype(view: View, rows: pl.DataFrame) -> tuple[str, list[dict[str, Any]]]:
    """Rows of the chosen dtype, else of float32, else of the first, by size."""
    ok = in_order(rows.filter(pl.col("status") == "ok"))
    dtypes = ok.get_column("dtype").unique().sort().to_list()
    if not dtypes:
        return "", []
    dtype = view.dtype or ("float32" if "float32" in dtypes else dtypes[0])
    return dtype, ok.filter(pl.col("dtype") == dtype).to_dicts()
