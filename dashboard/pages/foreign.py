"""A benchmark of another project: its own parameters are the facets, nothing of ours is forced on it."""

from __future__ import annotations

import json
import math
from typing import Any

import polars as pl
from dash import html

from dashboard.components import numbers, table
from dashboard.components.controls import select
from dashboard.components.figure import chart
from dashboard.components.parameters import FacetPoint, by_parameter
from dashboard.components.parts import panel, short
from dashboard.view import View

MOST_LINES = 12


def benchmark(view: View, name: str) -> list[Any]:
    """Newest values of a benchmark over its parameters."""
    rows = view.latest().filter(pl.col("operator") == name).to_dicts()
    facets = [_facets(row) for row in rows]
    names = list(dict.fromkeys(key for facet in facets for key in facet))
    environments = sorted({row["environment"] or "" for row in rows})
    unit = next((row["unit"] for row in rows if row["unit"]), "")
    columns = [
        *(table.text(key, f"facet {key}") for key in names),
        *([table.text("Environment", "environment")] if len(environments) > 1 else []),
        table.number("Value", view.metric.name, lambda v: view.show(v, unit), csv=f"value_{unit}"),
        table.text("99 % interval", "interval"),
        table.text("Status", "state"),
        table.text("Commit", "short"),
        table.link(
            "History",
            "open",
            lambda r: view.state.to("history", operator=name, shape=r["shape"], show=r["environment"]),
        ),
    ]
    full = [
        {
            **row,
            **{f"facet {key}": str(facet.get(key, "")) for key in names},
            "open": "history",
            "interval": numbers.spread(row[view.metric.name], row.get(view.metric.low), row.get(view.metric.high)),
            "short": short(row["commit"]),
            "state": row["status"] + (f": {row['reason']}" if row["reason"] else ""),
        }
        for row, facet in zip(rows, facets, strict=True)
    ]
    twin = table.table(name, columns, full)
    drawn = _drawn(view, name, rows, facets, names, unit) if names else None
    return [
        html.Div(
            [
                html.H1(name),
                html.P(
                    f"{len(rows)} combinations of {len(names)} parameters, in {unit or 'no unit'}", className="note"
                ),
            ],
            className="title",
        ),
        drawn,
        panel("All combinations", twin),
    ]


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"


def _facets(row: dict[str, Any]) -> dict[str, Any]:
    loaded = json.loads(row["facets"]) if row["facets"] else {}
    return loaded if isinstance(loaded, dict) else {}


def _drawn(
    view: View, name: str, rows: list[dict[str, Any]], facets: list[dict[str, Any]], names: list[str], unit: str
) -> Any:
    along = view.state.get("along")
    if along not in names:
        along = next(
            (key for key in names if all(_number(f.get(key)) is not None for f in facets)), names[0] if names else ""
        )
    points = []
    for row, facet in zip(rows, facets, strict=True):
        value = row[view.metric.name]
        if value is None or not math.isfinite(value):
            continue
        rest = ", ".join(f"{key}={facet[key]}" for key in names if key != along and key in facet)
        line = " · ".join(
            part for part in (row["environment"] if len({r["environment"] for r in rows}) > 1 else "", rest) if part
        )
        href = view.state.to("history", operator=name, shape=row["shape"], show=row["environment"])
        points.append(
            FacetPoint(
                line or name, facet.get(along, ""), value, row.get(view.metric.low), row.get(view.metric.high), href
            )
        )
    if not points:
        return None
    lines = list(dict.fromkeys(point.line for point in points))
    kept = [point for point in points if point.line in lines[:MOST_LINES]]
    columns = [
        table.text("Line", "line"),
        table.text(along or "case", "at"),
        table.number("Value", "value", lambda v: view.show(v, unit)),
    ]
    twin = table.table(f"{name}-drawn", columns, [{"line": p.line, "at": str(p.at), "value": p.value} for p in points])
    figure = by_parameter(kept, along or "benchmark", view.metric.label, unit)
    note = f"The first {MOST_LINES} of {len(lines)} lines; the table has all." if len(lines) > MOST_LINES else ""
    body = chart("facets", f"{view.metric.label} by {along}" if along else view.metric.label, figure, twin, note)
    choose = select("along", "Along", [(key, key) for key in names], along) if len(names) > 1 else None
    return html.Div([html.Div([choose], className="bar") if choose is not None else None, body])


def _number(value: Any) -> float | None:
    try:
        return float(str(value).strip("'\""))
    except ValueError:
        return None
