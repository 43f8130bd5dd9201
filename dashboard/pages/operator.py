"""One operator: which implementation is fastest at which case, by how much, and how to see it again."""

from __future__ import annotations

import json
import math
from typing import Any

import polars as pl
from dash import html

from dashboard.components import numbers, table
from dashboard.components.controls import implementation_chips, select
from dashboard.components.heatmap import MatrixCell, legend, matrix
from dashboard.components.ladder import rungs
from dashboard.components.parts import command, definitions, empty, panel, tile
from dashboard.newest import newest_run_of
from dashboard.pages.foreign import benchmark
from dashboard.pages.links import samples_link
from dashboard.pages.operator_charts import batch_chart, in_order, size_chart
from dashboard.pages.page import Page, simple
from dashboard.pages.profile_offers import of_operator
from dashboard.regressions import told
from dashboard.store import queries
from dashboard.summary import speedups_by
from dashboard.view import View

CONTROLS = ("operator", "machine", "project", "metric", "baseline", "dtype")


def draw(view: View) -> list[Any]:
    operator = view.operator()
    if not operator:
        return [empty("No operators", "These results name no operator.")]
    if not view.ours:
        return benchmark(view, operator)
    speedups = view.speedups().filter(pl.col("operator") == operator)
    if speedups.is_empty():
        return [empty("Nothing measured here", f"{operator} has no measurement under these filters.")]
    run = newest_run_of(view, operator)
    implementations = _ordered(speedups, view)
    shown = _shown(speedups, view)
    return [
        html.Div([html.H1(operator), _ideas_line(run)], className="title"),
        _tiles(view, operator, speedups),
        implementation_chips(view.state, implementations),
        _cases(view, operator, shown),
        size_chart(view, shown, implementations, lambda name, rows: _twin(view, f"{operator}-{name}", rows)),
        batch_chart(view, shown, implementations),
        _best(view, operator, shown),
        of_operator(view, operator),
        _ladders(view, operator, speedups, run),
        _reproduce(operator, run),
    ]


def _ordered(speedups: pl.DataFrame, view: View) -> list[str]:
    """Implementations, the baseline first, then the fastest first, those without a value last."""
    rows = speedups_by(speedups, ("implementation",)).sort("implementation").to_dicts()
    rows.sort(key=lambda row: (row["implementation"] != view.baseline, -(row["geomean"] or 0)))
    return [row["implementation"] for row in rows]


def _shown(speedups: pl.DataFrame, view: View) -> pl.DataFrame:
    chosen = view.state.many("show")
    kept = (
        speedups.filter(pl.col("implementation").cast(pl.String).is_in([*chosen, view.baseline]))
        if chosen
        else speedups
    )
    return kept if kept.height else speedups


def _ideas_line(run: dict[str, Any] | None) -> html.P:
    bound = run["bound"] if run else ""
    return html.P(f"{bound}-bound" if bound else "", className="note")


def _tiles(view: View, operator: str, speedups: pl.DataFrame) -> html.Div:
    rows = speedups_by(speedups.filter(pl.col("implementation") != view.baseline), ("implementation",))
    ranked = rows.filter(pl.col("geomean").is_not_null()).sort("k", "geomean", descending=True).to_dicts()
    cases = speedups.select("dtype", "shape").n_unique()
    full = [row for row in ranked if row["k"] == cases] or ranked
    first = max(full, key=lambda row: row["geomean"], default=None)
    best = _winners(view, operator, speedups)
    wins = best.group_by("implementation").len("wins").sort("wins", "implementation", descending=True).to_dicts()
    regressions, which, any_open = told(view, lambda group: group.first.implementation, operator)
    return html.Div(
        [
            _best_tile(view, first, cases),
            tile(
                "Most often fastest",
                wins[0]["implementation"] if wins else "–",
                "; ".join(f"{row['implementation']} {row['wins']}" for row in wins[:4]) + f" of {best.height} cases",
            ),
            tile(
                "Open regressions",
                regressions,
                which,
                view.state.to("regressions", operator=operator),
                "bad" if any_open else "",
            ),
            tile(
                "Failed",
                str(speedups.filter(pl.col("status") == "failed").height),
                f"{speedups.filter(pl.col('status') == 'skipped').height} skipped of {speedups.height} measurements",
            ),
        ],
        className="tiles",
    )


def _best_tile(view: View, first: dict[str, Any] | None, cases: int) -> html.Div:
    """The implementation with the best mean, which may be the baseline."""
    title = "Best over all cases"
    if first is None:
        return tile(title, "–", f"no implementation beside {view.baseline} has a value")
    mean = f"{numbers.times(first['geomean'])} over {view.baseline}, geometric mean of {first['k']} of {cases} cases"
    if first["geomean"] <= 1:
        return tile(title, view.baseline, f"next is {first['implementation']}: {mean}")
    return tile(title, first["implementation"], mean, tone="good")


def _winners(view: View, operator: str, speedups: pl.DataFrame) -> pl.DataFrame:
    return queries.best_by_size(speedups, operator, view.metric.name)


def _case_name(row: dict[str, Any], view: View) -> str:
    return row["shape"] if view.dtype else f"{row['dtype']} {row['shape']}"


def _cases(view: View, operator: str, shown: pl.DataFrame) -> html.Section:
    rows = in_order(shown).to_dicts()
    best: dict[str, float] = {}
    better = max if view.metric.direction == "higher" else min
    for row in rows:
        value = row[view.metric.name]
        if value is not None and row["status"] == "ok":
            name = _case_name(row, view)
            best[name] = better(best.get(name, value), value)
    cells = {
        (_case_name(row, view), row["implementation"]): _cell(view, row, best.get(_case_name(row, view)))
        for row in rows
    }
    names = list(dict.fromkeys(name for name, _ in cells))
    by_name = {_case_name(row, view): row for row in rows}
    heads = [
        (name, view.state.to("history", operator=operator, dtype=by_name[name]["dtype"], shape=by_name[name]["shape"]))
        for name in names
    ]
    return panel(
        f"{view.metric.label} by case",
        matrix(f"{operator}: {view.metric.label} by case", "Case", heads, _ordered(shown, view), cells),
        legend(),
        html.Details([html.Summary("Table and CSV"), _twin(view, operator, rows)], id="twin-cases"),
        note=f"Median with half its 99 % interval; colour and second line: speedup over {view.baseline}. A cell opens "
        "the samples, a case its history.",
    )


def _cell(view: View, row: dict[str, Any], best: float | None) -> MatrixCell:
    href = samples_link(view, row)
    where = f"{row['implementation']}, {row['dtype']} {row['shape']}"
    if row["status"] == "skipped":
        return MatrixCell("skipped", "skipped", href=href, hint=f"{where}: skipped, {row['reason']}")
    if row["status"] == "failed":
        return MatrixCell(
            f"✕ {row['failure']}", "failed", href=href, hint=f"{where}: {row['failure']}: {row['reason']}"
        )
    value = row[view.metric.name]
    if value is None:
        return MatrixCell("–", "ok", href=href, hint=f"{where}: no {view.metric.label}")
    half = numbers.spread(value, row.get(view.metric.low), row.get(view.metric.high))
    mark = "≈" if row["unstable"] else ""
    ratio = row["speedup"]
    hint = (
        f"{where}: {view.show(value)} {half}, n = {row['n']}; {numbers.times(ratio)} over {view.baseline}"
        f"{' (same rounds)' if row['paired'] else ''}; commit {row['commit'][:8]}; timer {row['timer']}"
    )
    if row["unstable"]:
        hint += f"; unstable: {row['unstable']}"
    log2 = math.log2(ratio) if ratio else None
    below = f"{half} · {numbers.times(ratio)}" if half else numbers.times(ratio)
    return MatrixCell(f"{mark}{view.show(value)}", "ok", log2, below, href, hint, value == best)


def _twin(view: View, operator: str, rows: list[dict[str, Any]]) -> html.Div:
    metric = view.metric
    columns = [
        table.text("Implementation", "implementation"),
        table.text("Dtype", "dtype"),
        table.text("Shape", "shape"),
        table.text("Status", "status"),
        table.number(metric.label, metric.name, view.show, csv=_base_unit(view), large=metric.direction == "higher"),
    ]
    if metric.low:
        columns += [
            table.number(
                "Low", metric.low, view.show, csv=f"{metric.low}_{metric.unit}", hint="99 % interval of the median"
            ),
            table.number("High", metric.high, view.show, csv=f"{metric.high}_{metric.unit}"),
        ]
    columns += [
        table.number(f"Speedup over {view.baseline}", "speedup", numbers.times, large=True),
        table.number("n", "n", str, hint="samples"),
        table.text("Reason", "why"),
        table.link("Samples", "open", lambda r: samples_link(view, r)),
    ]
    full = [{**row, "why": row["reason"] or row["unstable"], "open": "open"} for row in rows]
    return table.table(f"{operator}-{metric.name}", columns, full)


def _base_unit(view: View) -> str:
    return f"{view.metric.name}_{view.metric.unit.replace('/', '_per_')}".rstrip("_")


def _best(view: View, operator: str, shown: pl.DataFrame) -> html.Section:
    frame = _winners(view, operator, shown).sort("dtype", "bytes")
    columns = [
        table.text("Dtype", "dtype"),
        table.text("Shape", "shape"),
        table.text("Fastest", "implementation"),
        table.number(view.metric.label, "value", view.show),
        table.text("Next", "second"),
        table.number("Ahead by", "margin", lambda m: numbers.percent(m - 1), hint="second / best − 1", large=True),
        table.text("Certain", "certain", "whether the 99 % intervals of the two are apart"),
        table.number("Bytes", "bytes", lambda b: numbers.quantity(b, "B")),
    ]
    rows = [{**row, "certain": "tie: intervals touch" if row["tie"] else "yes"} for row in frame.to_dicts()]
    return panel(
        "Best by size",
        table.table(f"best-{operator}", columns, rows),
        command(f"groundspeed best {operator}"),
        note="Which implementation to choose at which size. The command prints the same and writes a dispatch table.",
    )


def _ladders(view: View, operator: str, speedups: pl.DataFrame, run: dict[str, Any] | None) -> Any:
    ladders: dict[str, list[str]] = json.loads(run["ladders"]) if run and run["ladders"] else {}
    ideas: dict[str, str] = json.loads(run["ideas"]) if run and run["ideas"] else {}
    ok = in_order(speedups.filter((pl.col("status") == "ok") & pl.col(view.metric.name).is_finite()))
    if not ladders or ok.is_empty():
        return None
    cases = list(dict.fromkeys((row["dtype"], row["shape"]) for row in ok.select("dtype", "shape").to_dicts()))
    asked = view.state.get("case")
    names = [f"{dtype} {shape}" for dtype, shape in cases]
    case = asked if asked in names else names[-1]
    dtype, shape = cases[names.index(case)]
    values = {
        row["implementation"]: row
        for row in ok.filter((pl.col("dtype") == dtype) & (pl.col("shape") == shape)).to_dicts()
    }
    return panel(
        "Ladder: what each idea bought",
        select("case", "Case", [(name, name) for name in names], case, names[-1]),
        *(rungs(name, steps, values, ideas, view.metric, view.unit) for name, steps in ladders.items()),
        note="Each rung is one idea further than the one before, on one case.",
    )


def _reproduce(operator: str, run: dict[str, Any] | None) -> html.Section:
    if run is None:
        return panel("Reproduce", command(f"groundspeed run {operator}"))
    missing: dict[str, str] = json.loads(run["missing"]) if run["missing"] else {}
    ideas: dict[str, str] = json.loads(run["ideas"]) if run["ideas"] else {}
    return panel(
        "Reproduce",
        command(run["command"] or f"groundspeed run {operator}"),
        definitions(list(ideas.items())),
        definitions([(f"no {backend}", reason) for backend, reason in missing.items()]),
        note="The command that made the newest measurements, and what each implementation does.",
    )


PAGE = Page("operator", "Operator", simple(draw), CONTROLS)
