"""What is fast, what is slow and what went wrong, on one machine, at a glance."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
from dash import html

from dashboard.components import numbers, table
from dashboard.components.controls import choices
from dashboard.components.heatmap import MatrixCell, legend, matrix
from dashboard.components.palette import sign
from dashboard.components.parts import age, empty, panel, short, tile
from dashboard.newest import newest_run
from dashboard.pages.page import Page, simple
from dashboard.regressions import told
from dashboard.summary import best_by_case, columns_of, since_previous, speedups_by
from dashboard.view import View
from groundspeed.analysis.history import SMALLEST

MANY = 10  # implementations beyond which the matrix starts out by back end
LISTED = 8
MOST_MOVED = 500
LAST_COMMITS = 10  # a series not measured in these has nothing recent to tell


def draw(view: View) -> list[Any]:
    if not view.ours:
        return _foreign(view)
    speedups = view.speedups()
    if speedups.is_empty():
        return [empty("Nothing measured here", "These filters leave no measurement.")]
    others = speedups.filter(pl.col("implementation") != view.baseline)
    return [
        html.H1(f"Overview of {view.machine}", className="hidden"),
        _tiles(view, speedups, others),
        _matrix(view, speedups),
        html.Div([_means(view, speedups), _extremes(view, others)], className="columns"),
        _recent(view),
    ]


def _tiles(view: View, speedups: pl.DataFrame, others: pl.DataFrame) -> html.Div:
    best = best_by_case(others)
    cases = speedups.select("operator", "dtype", "shape").n_unique()
    mean = best.get_column("speedup").log().mean()
    faster = best.filter(pl.col("speedup") > 1).height
    failed = speedups.filter(pl.col("status") == "failed").height
    skipped = speedups.filter(pl.col("status") == "skipped").height
    unstable = speedups.filter(pl.col("unstable").cast(pl.String) != "").height
    regressions, which, any_open = told(view, lambda group: group.label)
    run = newest_run(view)
    return html.Div(
        [
            tile(
                f"Best of the others against {view.baseline}",
                numbers.times(math.exp(mean)) if isinstance(mean, float) else numbers.ABSENT,
                f"geometric mean over {best.height} of {cases} cases; ahead in {faster}",
                tone="good" if isinstance(mean, float) and mean > 0 else "",
            ),
            tile(
                "Open regressions",
                regressions,
                which,
                view.state.to("regressions"),
                "bad" if any_open else "",
            ),
            tile(
                "Failed",
                str(failed),
                f"{skipped} skipped, {unstable} ≈ with a wide interval",
                view.state.to("data", status="failed"),
                "bad" if failed else "",
            ),
            tile(
                "Measured",
                age(run["started"]) if run else "unknown",
                f"commit {short(run['commit'])}, {view.machine}" if run else view.machine,
                view.state.to("data"),
            ),
        ],
        className="tiles",
    )


def _matrix(view: View, speedups: pl.DataFrame) -> html.Section:
    implementations = view.frames.choices(view.machine, view.project, "implementation")
    usual = "backend" if len(implementations) > MANY else "implementation"
    by = view.state.get("by", usual)
    columns = columns_of(implementations, by == "backend")
    summary = {
        (row["operator"], row["implementation"]): row
        for row in speedups_by(speedups, ("operator", "implementation")).to_dicts()
    }
    operators = sorted({operator for operator, _ in summary})
    cells = {}
    for operator in operators:
        chosen = {
            column: _best_of([summary[operator, name] for name in members if (operator, name) in summary])
            for column, members in columns.items()
        }
        top = max((row["geomean"] for row in chosen.values() if row and row["geomean"]), default=None)
        for column, row in chosen.items():
            if row:
                cells[operator, column] = _cell(view, row, row["geomean"] == top, column)
    rows = [(operator, view.state.to("operator", operator=operator)) for operator in operators]
    choice = choices(view.state, "by", [("backend", "by back end"), ("implementation", "by implementation")], by, usual)
    twin = table.table(
        "speedup-by-operator",
        [
            table.link("Operator", "operator", lambda r: view.state.to("operator", operator=r["operator"])),
            table.text("Implementation", "implementation"),
            table.number(f"Speedup over {view.baseline}", "geomean", numbers.times, large=True),
            table.number("Cases compared", "k", str),
            table.number("Cases", "n", str),
            table.number("Failed", "failed", str),
            table.number("Skipped", "skipped", str),
            table.number("Unstable", "unstable", str),
        ],
        summary.values(),
        (2, -1),
    )
    return panel(
        f"Speedup over {view.baseline}: {view.metric.label}",
        choice,
        matrix("Speedup by operator and implementation", "Operator", rows, tuple(columns), cells),
        legend(),
        html.Details([html.Summary("Table and CSV"), twin], id="twin-overview"),
        note="Geometric mean over the cases that both have, on the newest measurements; 2× is twice as good. "
        + ("A back end shows its best implementation of each operator." if by == "backend" else ""),
    )


def _best_of(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    return max(rows, key=lambda row: row["geomean"] or 0.0, default=None)


def _cell(view: View, row: dict[str, Any], best: bool, column: str) -> MatrixCell:
    href = view.state.to("operator", operator=row["operator"], show=f"{view.baseline}~{row['implementation']}")
    name = row["implementation"]
    partial = f"{row['k']} of {row['n']}" if 0 < row["k"] < row["n"] else ""
    below = " · ".join(part for part in (name if name != column else "", partial) if part)
    hint = (
        f"{name} on {row['operator']}: {numbers.times(row['geomean'])} over {view.baseline}, {row['k']} of {row['n']} "
        f"cases; {row['failed']} failed, {row['skipped']} skipped, {row['unstable']} unstable"
    )
    if row["geomean"] is None:
        kind = "failed" if row["failed"] else "skipped"
        return MatrixCell("✕" if row["failed"] else "skipped", kind, href=href, hint=hint, below=below)
    mark = ("≈" if row["unstable"] else "") + numbers.times(row["geomean"]) + (" ✕" if row["failed"] else "")
    return MatrixCell(mark, "ok", math.log2(row["geomean"]), below, href, hint, best)


def _means(view: View, speedups: pl.DataFrame) -> html.Section:
    by_operator = speedups_by(speedups, ("operator", "implementation")).filter(pl.col("geomean").is_not_null())
    fastest = by_operator.sort("geomean", descending=True).unique("operator", keep="first").sort("operator").to_dicts()
    wide = by_operator.group_by("implementation").len("operators").filter(pl.col("operators") > 1)
    several = (
        speedups_by(speedups.filter(pl.col("implementation") != view.baseline), ("implementation",))
        .join(wide, on="implementation")
        .filter(pl.col("geomean").is_not_null())
        .sort("geomean", descending=True)
        .to_dicts()
    )
    return panel(
        "Fastest of each operator",
        _bars([(row["operator"], row["implementation"], row) for row in fastest], view),
        html.H3("Implementations that several operators have") if several else None,
        _bars([(row["implementation"], f"{row['operators']} operators", row) for row in several], view),
        note=f"Geometric mean speedup over {view.baseline}, over k of n cases. Means over different cases do not rank "
        "implementations: the matrix does, operator by operator.",
    )


def _bars(rows: list[tuple[str, str, dict[str, Any]]], view: View) -> html.Ol:
    """One bar a row: what it is of, a second word, the mean with its k of n."""
    top = max((row["geomean"] for _, _, row in rows), default=1.0)
    return html.Ol(
        [
            html.Li(
                [
                    html.A(name, href=view.state.to("operator", operator=row["operator"]))
                    if "operator" in row
                    else name,
                    html.Span(second, className="below"),
                    html.Span(
                        html.Span(
                            style={
                                "width": f"{row['geomean'] / top * 100:.1f}%",
                                "backgroundColor": sign(row["implementation"]).colour,
                            }
                        ),
                        className="track",
                        **{"aria-hidden": "true"},
                    ),
                    html.Span(numbers.times(row["geomean"]), className="number"),
                    html.Span(f"{row['k']} of {row['n']}", className="below"),
                ]
            )
            for name, second, row in rows
        ],
        className="bars",
    )


def _extremes(view: View, others: pl.DataFrame) -> html.Section:
    best = best_by_case(others).sort("speedup", descending=True)
    gains = best.filter(pl.col("speedup") > 1).head(LISTED)
    losses = best.filter(pl.col("speedup") < 1).reverse().head(LISTED)
    return panel(
        "Largest gains and losses",
        html.H3("Gains"),
        _cases("gains", view, gains) if gains.height else html.P("None."),
        html.H3("Cases in which nothing beats the baseline"),
        _cases("losses", view, losses) if losses.height else html.P("None."),
        note=f"The fastest implementation of each case against {view.baseline}.",
    )


def _cases(name: str, view: View, frame: pl.DataFrame) -> html.Div:
    columns = [
        table.link("Case", "label", lambda r: view.state.to("operator", operator=r["operator"], dtype=r["dtype"])),
        table.text("Implementation", "implementation"),
        table.number("Speedup", "speedup", numbers.times, large=True),
        table.number("Value", view.metric.name, view.show, hint=view.metric.label),
    ]
    rows = frame.with_columns(pl.format("{} {} {}", "operator", "dtype", "shape").alias("label")).to_dicts()
    return html.Div(table.table(name, columns, rows), className="compact")


def _value(view: View, title: str, key: str) -> table.Column:
    return table.number(title, key, view.show) if view.ours else table.measured(title, key)


def _last_rows(view: View) -> pl.LazyFrame:
    commits = [commit for commit, _ in view.frames.commits(view.machine, view.project)[:LAST_COMMITS]]
    return view.frames.of(view.machine, view.project).filter(pl.col("commit").is_in(commits))


def _recent(view: View) -> html.Section:
    metric = view.metric
    changes = view.frames.once(
        ("since previous", view.machine, view.project, metric.name),
        lambda: since_previous(_last_rows(view), metric.name, metric.low, metric.high, metric.direction),
    )
    if view.dtype:
        changes = changes.filter(pl.col("dtype") == view.dtype)
    if changes.is_empty():
        return panel("Since the commit before", html.P("There is one commit only: nothing to compare with yet."))
    size = pl.col("ratio").log().abs()
    moved = changes.filter(pl.col("significant").fill_null(True) & (size > math.log1p(SMALLEST)))
    worse = moved.filter(pl.col("ratio") < 1).height
    note = (
        f"{moved.height} of {changes.height} series moved by {SMALLEST:.0%} or more with their 99 % intervals apart, "
        f"{worse} of them for the worse. Runs hours apart differ by more than their intervals: a hint, not a verdict."
    )
    if moved.is_empty():
        return panel("Since the commit before", note=note)
    real = moved.sort(size, descending=True).head(MOST_MOVED)
    columns = [
        table.text("Operator", "operator"),
        table.text("Implementation", "implementation"),
        table.text("Case", "label"),
        table.number(
            "Change",
            "ratio",
            lambda r: f"{'▲' if r > 1 else '▼'} {numbers.percent(r - 1, signed=True)}",
            hint="above 0: better than at the commit before",
        ),
        _value(view, metric.label, metric.name),
        _value(view, "Before", "previous"),
        table.link(
            "Commits",
            "range",
            lambda r: view.state.to(
                "compare", axis="commit", left=r["previous_commit"], right=r["commit"], operator=r["operator"]
            ),
        ),
        table.link(
            "History",
            "history",
            lambda r: view.state.to(
                "history", operator=r["operator"], shape=r["shape"], dtype=r["dtype"], show=r["implementation"]
            ),
        ),
    ]
    rows = [
        {
            **row,
            "label": f"{row['dtype']} {row['shape']}".strip(),
            "history": "history",
            "range": f"{short(row['previous_commit'])} → {short(row['commit'])}",
        }
        for row in real.to_dicts()
    ]
    return panel(
        "Since the commit before",
        table.table("since-the-commit-before", columns, rows, (3, 1)),
        note=note,
    )


def _foreign(view: View) -> list[Any]:
    latest = view.latest().filter(pl.col("status") == "ok")
    groups = (
        latest.group_by("operator")
        .agg(
            pl.len().alias("series"),
            pl.col(view.metric.name).median().alias("value"),
            pl.col("unit").first(),
            pl.coalesce("commit_time", "started").max().alias("when"),
        )
        .sort("operator")
        .to_dicts()
    )
    columns = [
        table.link("Benchmark", "operator", lambda r: view.state.to("operator", operator=r["operator"])),
        table.number("Parameters", "series", str),
        table.measured("Median value", "value"),
        table.text("Unit", "unit"),
        table.text("Newest", "newest"),
    ]
    rows = [{**row, "newest": row["when"].strftime("%Y-%m-%d") if row["when"] else ""} for row in groups]
    return [
        html.H1(f"Overview of {view.machine}", className="hidden"),
        panel(
            "Benchmarks",
            table.table("benchmarks", columns, rows, (0, 1)),
            note="Results of another project: benchmarks with their own parameters and units.",
        ),
        _recent(view),
    ]


PAGE = Page("", "Overview", simple(draw))
