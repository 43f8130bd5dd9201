"""Two commits, machines or implementations side by side, over the cases that both have and no others."""

from __future__ import annotations

import math
from typing import Any, get_args

import polars as pl
from dash import html

from dashboard.components import numbers, table
from dashboard.components.controls import choices, select
from dashboard.components.dumbbell import ratio_strip
from dashboard.components.figure import chart
from dashboard.components.palette import BASELINE
from dashboard.components.parts import empty, short, tile
from dashboard.pages.page import Page, simple
from dashboard.store import queries
from dashboard.view import View, device_label, machine_details, machine_names

AXES = (("commit", "two commits"), ("implementation", "two implementations"), ("machine", "two machines"))
DRAWN = 400
COMPARED = "torch_compile"  # with the baseline, when the link names none
CONTROLS = ("machine", "project", "metric", "dtype")


def draw(view: View) -> list[Any]:
    axis = view.state.get("axis", "commit")
    axes = [pair for pair in AXES if view.ours or pair[0] != "implementation"]
    if axis not in dict(axes):
        axis = "commit"
    options = _options(view, axis)
    if len(options) < 2:
        return [
            html.H1("Compare"),
            choices(view.state, "axis", axes, axis, "commit"),
            empty(
                "Nothing to compare",
                f"These results hold {len(options)} {axis}{'s' if len(options) != 1 else ''}; two are needed.",
            ),
        ]
    left, right = _sides(view, axis, [value for value, _ in options])
    both = _both(view, axis, left, right)
    return [
        html.Div([html.H1("Compare"), _operator_note(view)], className="title"),
        choices(view.state, "axis", axes, axis, "commit"),
        html.Div(
            [
                select("left", "From", options, left),
                select("right", "To", options, right),
                html.A("swap", href=view.state.here(left=right, right=left), className="chip"),
                _significance(view),
            ],
            className="bar",
        ),
        *_result(view, axis, left, right, both),
    ]


def _operator_note(view: View) -> html.P:
    asked = view.state.get("operator")
    if not asked:
        return html.P(view.metric.label, className="note")
    return html.P(
        [f"{view.metric.label}, {asked} only · ", html.A("all operators", href=view.state.here(operator=None))],
        className="note",
    )


def _significance(view: View) -> html.A:
    on = view.state.get("only") == "significant"
    return html.A(
        "significant only",
        href=view.state.here(only=None if on else "significant"),
        className="chip" if on else "chip off",
        **({"aria-current": "true"} if on else {}),
    )


def _options(view: View, axis: str) -> list[tuple[str, str]]:
    if axis == "machine":
        names = machine_names(view.frames)
        return [(name, f"{name} · {device_label(machine_details(view.frames, name))}") for name in names]
    if axis == "implementation":
        return [(name, name) for name in view.frames.choices(view.machine, view.project, "implementation")]
    return [
        (commit, f"{short(commit)} · {at:%Y-%m-%d}" if at else short(commit))
        for commit, at in view.frames.commits(view.machine, view.project)
    ]


def _sides(view: View, axis: str, values: list[str]) -> tuple[str, str]:
    """Defaults: the commit before against the newest; eager against the first other; the first two machines."""
    if axis == "commit":
        usual = (values[1], values[0])
    elif axis == "implementation":
        others = [value for value in values if value != view.baseline]
        usual = (view.baseline, COMPARED if COMPARED in others else others[0])
    else:
        usual = (values[0], values[1])
    left, right = view.state.get("left", usual[0]), view.state.get("right", usual[1])
    return _full(left, values, usual[0]), _full(right, values, usual[1])


def _full(asked: str, values: list[str], usual: str) -> str:
    """The value that the link means: itself, or the commit that it abbreviates."""
    if asked in values:
        return asked
    return next((value for value in values if len(asked) >= 6 and value.startswith(asked)), usual)


def _both(view: View, axis: str, left: str, right: str) -> queries.Comparison:
    if axis == "machine":
        rows = view.frames.snapshot.latest.lazy().filter(pl.col("project") == view.project)
    elif axis == "implementation":
        rows = view.frames.latest(view.machine, view.project).lazy()
    else:
        rows = view.frames.of(view.machine, view.project, view.state.get("operator"), (left, right))
    if view.dtype:
        rows = rows.filter(pl.col("dtype") == view.dtype)
    if view.state.get("operator"):
        rows = rows.filter(pl.col("operator") == view.state.get("operator"))
    sides = [rows.filter(pl.col(axis) == side).collect() for side in (left, right)]
    return queries.compare(sides[0], sides[1], view.metric.name, axis=axis)  # type: ignore[arg-type]


def _result(view: View, axis: str, left: str, right: str, both: queries.Comparison) -> list[Any]:
    frame = both.frame.filter(pl.col("ratio").is_finite() & (pl.col("ratio") > 0))
    if frame.is_empty():
        return [
            empty(
                "No case in common",
                f"{both.only_left} cases are only in {_name(axis, left)}, {both.only_right} only "
                f"in {_name(axis, right)}.",
            )
        ]
    intervals = frame.get_column("significant").null_count() < frame.height
    shown = frame.filter(pl.col("significant")) if view.state.get("only") == "significant" and intervals else frame
    mean = math.exp(float(frame.get_column("ratio").log().mean()))  # type: ignore[arg-type]
    significant = frame.filter(pl.col("significant")) if intervals else frame
    better = significant.filter(pl.col("ratio") > 1).height
    worse = significant.filter(pl.col("ratio") < 1).height
    what = "with intervals apart" if intervals else "without intervals: any difference counts"
    return [
        html.Div(
            [
                tile(
                    "Geometric mean",
                    numbers.times(mean),
                    f"{_name(axis, right)} over {_name(axis, left)}, {frame.height} cases in both",
                    tone="good" if mean > 1.005 else "bad" if mean < 0.995 else "",
                ),
                tile("Better", str(better), what),
                tile("Worse", str(worse), what, tone="bad" if worse else ""),
                tile(
                    "Not compared",
                    str(both.only_left + both.only_right),
                    f"{both.only_left} only on the left, {both.only_right} only on the right",
                ),
            ],
            className="tiles",
        ),
        _warning(axis, left, right, view),
        _drawn(view, axis, left, right, shown) if shown.height else empty("None", "No difference is significant."),
    ]


def _name(axis: str, value: str) -> str:
    return short(value) if axis == "commit" else value


def _warning(axis: str, left: str, right: str, view: View) -> html.P | None:
    if axis == "machine":
        kinds = [device_label(machine_details(view.frames, name)) for name in (left, right)]
        return html.P(f"{left} is a {kinds[0]}; {right} is a {kinds[1]}.", className="notice")
    if axis == "commit":
        return html.P(
            "Stored runs of two commits were hours apart: differences of 1–2 % may be the machine's. "
            "The gate alternates the two in one process.",
            className="note",
        )
    return None


def _drawn(view: View, axis: str, left: str, right: str, frame: pl.DataFrame) -> Any:
    labels = [
        c for c in ("machine", "operator", "implementation", "dtype", "shape") if c in frame.columns and c != axis
    ]
    named = frame.with_columns(
        pl.concat_str([pl.col(c).cast(pl.String) for c in labels if c != "machine"], separator=" ")
        .str.strip_chars()
        .alias("label")
    )
    ordered = named.with_columns(pl.col("ratio").log().abs().alias("size")).sort("size", descending=True)
    rows = ordered.to_dicts()
    unit = view.unit if view.metric.name != "value" else str(rows[0].get("unit") or "")
    for row in rows:
        row["href"] = view.state.to(
            "history",
            operator=row["operator"],
            dtype=row.get("dtype"),
            shape=row.get("shape"),
            show=row.get("implementation") if axis != "implementation" else f"{left}~{right}",
        )
    columns = [
        table.link("Case", "label", lambda r: r["href"]),
        table.number(_name(axis, left), "left", lambda v: view.show(v, unit), csv="left"),
        table.number(_name(axis, right), "right", lambda v: view.show(v, unit), csv="right"),
        table.number("Ratio", "ratio", numbers.times, hint="above 1: the right side is better", large=True),
        table.text("Intervals", "apart"),
    ]
    rounds = axis == "implementation" and BASELINE in (left, right) and view.metric.name == queries.BY_ROUNDS
    words = {True: "apart", False: "touch", None: "none"}
    twin = [{**row, "apart": words[row["significant"]]} for row in rows]
    figure = ratio_strip(rows[:DRAWN], _name(axis, left), _name(axis, right), lambda v: view.show(v, unit))
    return chart(
        "compare",
        f"{_name(axis, right)} over {_name(axis, left)}: {view.metric.label}",
        figure,
        table.table("compare", columns, twin),
        "One mark a case, on a log2 scale; right of 1× the right side is better. Filled: the 99 % intervals are apart."
        + (
            f" Cases of one record are compared with {BASELINE} round by round, others by their medians."
            if rounds
            else ""
        )
        + (f" The {DRAWN} largest of {len(rows)} are drawn, all are in the table." if len(rows) > DRAWN else ""),
    )


assert {axis for axis, _ in AXES} <= set(get_args(queries.Axis))
PAGE = Page("compare", "Compare", simple(draw), CONTROLS)
