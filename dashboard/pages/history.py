"""One case over the commits: values with their intervals, steps, and what changed around them."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
from dash import html

from dashboard.components import numbers, table
from dashboard.components.controls import implementation_chips, select
from dashboard.components.figure import chart
from dashboard.components.parts import empty, moment, panel, short
from dashboard.components.timeline import CommitPoint, timeline
from dashboard.pages.links import samples_link
from dashboard.pages.page import Page, simple
from dashboard.regressions import Change, changes_of
from dashboard.store import queries
from dashboard.view import View

CONTROLS = ("operator", "machine", "project", "metric", "dtype")
NEWEST = 400  # commits that are drawn unless more are asked for
MORE = (2_000, 10_000)
TOLD = ("driver", "cuda", "torch", "triton", "cupy", "python")  # of an environment, when a pointer rests on a commit


def draw(view: View) -> list[Any]:
    operator = view.operator()
    newest = view.frames.latest(view.machine, view.project).filter(pl.col("operator") == operator)
    if newest.is_empty():
        return [empty("No history", "These results hold nothing for this operator.")]
    shapes = _shapes(newest, view.dtype)
    shape, dtype = _chosen(view, shapes)
    rows = view.frames.of(view.machine, view.project, operator)
    series = rows.filter((pl.col("dtype") == dtype) & (pl.col("shape") == shape)).collect()
    names = _names(series)
    chosen = [name for name in view.state.many("show") if name in names]
    if chosen:
        series = series.filter(_label().is_in(chosen))
    framed = queries.history(
        series,
        view.frames.snapshot.runs.filter((pl.col("machine") == view.machine) & (pl.col("project") == view.project)),
    )
    framed, choose = _newest(view, framed)
    ok = framed.filter(pl.col(view.metric.name).is_finite()).with_columns(_label().alias("label"))
    changes = [c for c in changes_of(view) or [] if (c.operator, c.dtype, c.shape) == (operator, dtype, shape)]
    return [
        html.Div(
            [html.H1(f"History of {operator}"), html.P(f"{dtype} {shape}".strip(), className="note")], className="title"
        ),
        html.Div([_dtype_and_shape(view, shapes, dtype, shape), choose], className="bar"),
        implementation_chips(view.state, names) if len(names) > 1 else None,
        *(
            _panel(view, ok, changes)
            if ok.height
            else [empty("No values", f"{view.metric.label} was not measured here.")]
        ),
        _unmeasured(framed, view),
    ]


def _label() -> pl.Expr:
    """What tells the series of a case apart: the implementation, or a foreign project's environment."""
    implementation = pl.col("implementation").cast(pl.String)
    return pl.when(implementation != "").then(implementation).otherwise(pl.col("environment").cast(pl.String))


def _names(series: pl.DataFrame) -> list[str]:
    return sorted(series.select(_label().alias("label")).get_column("label").unique().to_list())


def _shapes(rows: pl.DataFrame, dtype: str) -> list[tuple[str, str]]:
    cases = rows.filter(pl.col("dtype") == dtype) if dtype else rows
    sized = cases.group_by("dtype", "shape").agg(pl.col("bytes").max())
    ordered = sized.with_columns(pl.col("dtype").cast(pl.String), pl.col("shape").cast(pl.String)).sort(
        "dtype", "bytes", "shape", nulls_last=True
    )
    return [(row["dtype"], row["shape"]) for row in ordered.to_dicts()]


def _chosen(view: View, shapes: list[tuple[str, str]]) -> tuple[str, str]:
    asked = view.state.get("shape")
    for dtype, shape in shapes:
        if shape == asked and (not view.dtype or dtype == view.dtype):
            return shape, dtype
    dtype, shape = shapes[-1] if view.ours else shapes[0]
    return shape, dtype


def _dtype_and_shape(view: View, shapes: list[tuple[str, str]], dtype: str, shape: str) -> Any:
    options = [(s, s or "(no parameters)") for d, s in shapes if d == dtype]
    return select("shape", "Case" if view.ours else "Parameters", options, shape)


def _newest(view: View, framed: pl.DataFrame) -> tuple[pl.DataFrame, Any]:
    """The rows of the newest commits, and a choice of how many where there are more than a chart shows well."""
    count = int(framed.get_column("ordinal").max() or 0) + 1  # type: ignore[arg-type]
    if count <= NEWEST:
        return framed, None
    asked = view.state.get("last", str(NEWEST))
    last = int(asked) if asked.isdigit() else NEWEST
    spans = [NEWEST, *(span for span in MORE if span < count), count]
    options = [(str(span), f"newest {span:,}" if span < count else f"all {count:,}") for span in spans]
    shown = framed.filter(pl.col("ordinal") >= count - last)
    return shown, select("last", "Commits", options, str(min(last, count)), str(NEWEST))


def _panel(view: View, ok: pl.DataFrame, changes: list[Change]) -> list[Any]:
    rows = ok.sort("ordinal").to_dicts()
    software = _software(view)
    points = [_point(view, row, software.get(row["run_id"], "")) for row in rows]
    unit = view.unit if view.metric.name != "value" else str(rows[0]["unit"] or "")
    names = {point.label for point in points}
    drawn = [c for c in changes if c.implementation in names or c.environment in names]
    figure = timeline(points, drawn, view.metric, unit)
    columns = [
        table.text("Series", "label"),
        table.number("#", "ordinal", str),
        table.text("Commit", "short"),
        table.text("Committed", "when"),
        table.number(view.metric.label, view.metric.name, lambda v: view.show(v, unit)),
        table.text("99 % interval", "interval"),
        table.number("n", "n", str),
        table.text("What changed", "event"),
        table.link("Samples", "open", lambda r: samples_link(view, r)),
    ]
    twin = [
        {
            **row,
            "short": short(row["commit"]),
            "when": moment(row["commit_time"] or row["started"]),
            "open": "open",
            "interval": numbers.spread(row[view.metric.name], row.get(view.metric.low), row.get(view.metric.high)),
            "event": "; ".join(point.events),
        }
        for row, point in zip(rows, points, strict=True)
    ]
    return [
        chart(
            "history",
            f"{view.metric.label} by commit",
            figure,
            table.table("history", columns, twin, (1, -1)),
            "Commits in order, oldest left. Bands are 99 % intervals of the median, steps the levels between "
            "change points; a dotted line is a changed environment, a gap a changed case. A point opens its samples.",
        ),
        _change_list(view, drawn),
    ]


def _software(view: View) -> dict[str, str]:
    """Run -> what it ran on, in a few words."""
    runs = view.frames.snapshot.runs.filter(
        (pl.col("machine") == view.machine) & (pl.col("project") == view.project)
    ).select("run_id", "details")
    words: dict[str, str] = {}  # by details: few, and the same for run after run
    for details in runs.get_column("details").unique():
        known = json.loads(details) if details else {}
        words[details] = ", ".join(f"{name} {known[name]}" for name in TOLD if known.get(name))
    return {run_id: words[details] for run_id, details in runs.unique("run_id").iter_rows()}


def _point(view: View, row: dict[str, Any], software: str) -> CommitPoint:
    events = []
    if row["environment_changed"]:
        events.append(f"environment: {row['environment_changed']}")
    if row["case_changed"]:
        events.append("case changed: a new series")
    return CommitPoint(
        row["label"],
        row["ordinal"],
        row[view.metric.name],
        row.get(view.metric.low),
        row.get(view.metric.high),
        row["commit"] or "",
        moment(row["commit_time"] or row["started"]),
        row["n"],
        samples_link(view, row),
        tuple(events),
        bool(row["case_changed"]),
        bool(row["unstable"]),
        row["implementation"] or "",
        software,
    )


def _change_list(view: View, changes: list[Change]) -> html.Section:
    if not changes:
        return panel("Change points", html.P("None found in these series."))
    columns = [
        table.text("Series", "implementation"),
        table.number("Change", "change", lambda v: numbers.percent(v, signed=True), hint="above 0: worse"),
        table.number("Before", "before", view.show),
        table.number("After", "after", view.show),
        table.text("Kind", "kind"),
        table.link("Lies between", "range", lambda r: r["href"]),
        table.text("State", "state"),
    ]
    rows = [
        {
            "implementation": c.implementation or c.environment,
            "change": c.worse,
            "before": c.before,
            "after": c.after,
            "range": f"{short(c.last_good)} → {short(c.by)}",
            "kind": c.kind,
            "state": "provisional" if c.provisional else "settled",
            "href": view.state.to("compare", axis="commit", left=c.last_good, right=c.by, operator=c.operator),
        }
        for c in changes
    ]
    return panel("Change points", table.table("change-points", columns, rows))


def _unmeasured(framed: pl.DataFrame, view: View) -> html.Section | None:
    bad = framed.filter(pl.col("status") != "ok").with_columns(_label().alias("label")).sort("ordinal", descending=True)
    if bad.is_empty():
        return None
    columns = [
        table.text("Series", "label"),
        table.number("#", "ordinal", str),
        table.text("Commit", "short"),
        table.text("Status", "status"),
        table.text("Failure", "failure"),
        table.text("Reason", "reason"),
    ]
    rows = [{**row, "short": short(row["commit"])} for row in bad.to_dicts()]
    return panel("Not measured", table.table("not-measured", columns, rows))


PAGE = Page("history", "History", simple(draw), CONTROLS)
