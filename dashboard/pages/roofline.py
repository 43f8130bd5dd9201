"""How near the device's own measured limits: arithmetic against traffic, on log scales."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
from dash import html

from dashboard.components import numbers, table
from dashboard.components.controls import implementation_chips, select
from dashboard.components.figure import chart
from dashboard.components.parts import empty, short
from dashboard.components.roof import RoofPoint, roof
from dashboard.pages.links import samples_link
from dashboard.pages.page import Page, simple
from dashboard.view import View, device_label

CONTROLS = ("machine", "dtype")


def draw(view: View) -> list[Any]:
    rows = view.frames.latest(view.machine, view.project) if view.ours else None
    if rows is None:
        return [empty("No roofline", "These results do not say how many bytes and operations a call needs.")]
    ok = rows.filter(
        (pl.col("status") == "ok") & (pl.col("bytes") > 0) & (pl.col("flops") > 0) & pl.col("device_cold").is_finite()
    )
    dtypes = ok.get_column("dtype").cast(pl.String).unique().sort().to_list()
    if not dtypes:
        return [empty("No roofline", "No measurement here has both bytes and operations.")]
    ceilings, source = newest_ceilings(view)
    dtype = view.dtype if view.dtype in dtypes else "float32" if "float32" in dtypes else dtypes[0]
    operators = ok.get_column("operator").cast(pl.String).unique().sort().to_list()
    operator = view.state.get("operator") if view.state.get("operator") in operators else ""
    points = ok.filter(pl.col("dtype") == dtype)
    if operator:
        points = points.filter(pl.col("operator") == operator)
    implementations = points.get_column("implementation").cast(pl.String).unique().sort().to_list()
    chosen = view.state.many("show")
    if chosen and operator:
        points = points.filter(pl.col("implementation").cast(pl.String).is_in(chosen))
    return [
        html.Div(
            [html.H1(f"Roofline of {view.machine}"), html.P(device_label(view.device), className="note")],
            className="title",
        ),
        html.Div(
            [select("operator", "Operator", [("", "all operators"), *((o, o) for o in operators)], operator)],
            className="bar",
        ),
        implementation_chips(view.state, implementations) if operator else None,
        html.P(
            "No ceilings were measured on this machine: the points stand without a roof. A run on a GPU measures them.",
            className="notice",
        )
        if not ceilings
        else None,
        _chart(view, points.to_dicts(), ceilings, dtype, source, not operator),
    ]


def newest_ceilings(view: View) -> tuple[dict[str, Any], str]:
    """The newest ceilings, and which runs they are of.

    Only sweeps of compute-bound operators measure a matmul rate, for their own dtypes: each kind of ceiling is the
    newest of its kind.
    """
    runs = view.frames.snapshot.runs.filter(
        (pl.col("machine") == view.machine) & (pl.col("ceilings").cast(pl.String) != "")
    ).sort("started", descending=True, nulls_last=True)
    found: dict[str, Any] = {}
    sources: dict[str, None] = {}
    for row in runs.iter_rows(named=True):
        measured = json.loads(row["ceilings"])
        rates = measured.pop("matmul", None) or {}
        matmul = found.setdefault("matmul", {})
        fresh = (measured.keys() - found.keys()) | (rates.keys() - matmul.keys())
        if fresh:
            found = measured | found
            found["matmul"] = rates | matmul
            sources[f"run {row['run_id']}, commit {short(row['commit'])}"] = None
    return found, "; ".join(sources)


def _chart(
    view: View, rows: list[dict[str, Any]], ceilings: dict[str, Any], dtype: str, source: str, together: bool
) -> Any:
    points = [
        RoofPoint(
            row["operator"],
            row["implementation"],
            row["shape"],
            row["flops"] / row["bytes"],
            row["flops"] / row["device_cold"],
            row["roofline"],
            row["bytes"] / row["device_cold"],
            samples_link(view, row),
        )
        for row in rows
    ]
    columns = [
        table.text("Operator", "operator"),
        table.text("Implementation", "implementation"),
        table.text("Shape", "shape"),
        table.number("FLOP/byte", "intensity", numbers.significant),
        table.number("Rate", "rate", lambda v: numbers.quantity(v, "FLOP/s"), csv="flop_per_s", large=True),
        table.number("Traffic", "traffic", lambda v: numbers.quantity(v, "B/s"), csv="byte_per_s", large=True),
        table.number(
            "Of the roof",
            "share",
            numbers.percent,
            large=True,
            hint="of the ceiling that binds, for the operator's own mix of reads and writes",
        ),
        table.link("Samples", "open", lambda r: r["href"]),
    ]
    twin = [
        {
            "operator": p.operator,
            "implementation": p.implementation,
            "shape": p.shape,
            "intensity": p.intensity,
            "rate": p.rate,
            "traffic": p.traffic,
            "share": p.share,
            "open": "open",
            "href": p.href,
        }
        for p in points
    ]
    roofs = [
        f"{kind} {numbers.quantity(ceilings.get(kind), 'B/s')}"
        for kind in ("copy", "read", "write")
        if ceilings.get(kind)
    ]
    roofs += [
        f"{name} matmul {numbers.quantity(rate, 'FLOP/s')}" for name, rate in (ceilings.get("matmul") or {}).items()
    ]
    return chart(
        "roofline",
        f"Roofline, {dtype}",
        roof(points, ceilings, dtype, together),
        table.table("roofline", columns, twin, (6, -1)),
        "Bytes and operations are the mathematical function's. Roofs were measured on this device"
        + (f" ({source}): {', '.join(roofs)}." if roofs else "; none is known.")
        + " A case that fits the L2 cache may pass a bandwidth roof.",
    )


PAGE = Page("roofline", "Roofline", simple(draw), CONTROLS)
