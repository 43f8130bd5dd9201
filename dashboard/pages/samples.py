"""The bottom: every sample of one measurement, the environment it was taken in and the command that takes it again."""

from __future__ import annotations

from typing import Any

import polars as pl
from dash import html

from dashboard.components import numbers, table
from dashboard.components.figure import chart
from dashboard.components.parts import command, definitions, empty, moment, panel
from dashboard.components.strip import rounds
from dashboard.pages.page import Page, simple
from dashboard.pages.profile_offers import of_measurement
from dashboard.store.samples import Samples, samples_of
from dashboard.view import View, device_label, metric_on

QUANTITIES = ("device_cold", "device_hot", "call", "host")  # which are metrics too, by the same names
LABELS = ("operator", "implementation", "dtype", "shape", "environment")


def draw(view: View) -> list[Any]:
    row = _row(view)
    if row is None:
        return [empty("No such measurement", "The link names a measurement that these results do not have.")]
    samples = samples_of(view.frames.snapshot.results, row)
    title = " ".join(part for part in (row["operator"], row["implementation"]) if part)
    return [
        html.Div(
            [
                html.H1(title),
                html.P(
                    [
                        f"{row['dtype']} {row['shape']}".strip(),
                        " · ",
                        device_label(view.device),
                        " · ",
                        html.A(
                            "history",
                            href=view.state.to(
                                "history",
                                operator=row["operator"],
                                dtype=row["dtype"],
                                shape=row["shape"],
                                show=row["implementation"] or row["environment"],
                            ),
                        ),
                    ],
                    className="note",
                ),
            ],
            className="title",
        ),
        _status(row),
        of_measurement(view, row),
        *_samples(view, row, samples),
        html.Div([_facts(row, samples), _environment(samples)], className="columns"),
        _command(row, samples),
    ]


def _row(view: View) -> dict[str, Any] | None:
    frame = view.frames.of(view.machine, view.project)
    for name in LABELS:
        frame = frame.filter(pl.col(name) == view.state.get(name))
    if view.state.get("run"):
        frame = frame.filter(pl.col("run_id") == view.state.get("run"))
    ordered = frame.collect().sort("started", descending=True, nulls_last=True)
    return ordered.row(0, named=True) if ordered.height else None


def _status(row: dict[str, Any]) -> html.P | None:
    if row["status"] == "failed":
        return html.P(f"✕ failed ({row['failure']}): {row['reason']}", className="notice bad")
    if row["status"] == "skipped":
        return html.P(f"skipped: {row['reason']}", className="notice")
    return html.P(f"≈ unstable: {row['unstable']}", className="notice") if row["unstable"] else None


def _samples(view: View, row: dict[str, Any], samples: Samples) -> list[Any]:
    if not samples.quantities:
        return [panel("Samples", html.P("The file holds no samples of this measurement."))]
    unit = str(row["unit"] or "s") if not view.ours else "s"
    columns = [
        table.text("Quantity", "name"),
        table.number("n", "n", str),
        *(
            table.number(label, key, lambda v: numbers.quantity(v, unit), csv=f"{key}_{unit}")
            for label, key in (
                ("Median", "median"),
                ("Lowest", "low"),
                ("p95", "p95"),
                ("p99", "p99"),
                ("Highest", "high"),
            )
        ),
    ]
    summary = []
    for name, values in samples.quantities.items():
        ordered = pl.Series(values)
        summary.append(
            {
                "name": _name(view, name),
                "n": len(values),
                "median": ordered.median(),
                "low": ordered.min(),
                "high": ordered.max(),
                "p95": ordered.quantile(0.95, "linear"),
                "p99": ordered.quantile(0.99, "linear"),
            }
        )
    every = [
        {"name": _name(view, name), "round": i, "value": value}
        for name, values in samples.quantities.items()
        for i, value in enumerate(values)
    ]
    twin = table.table(
        "samples",
        [
            table.text("Quantity", "name"),
            table.number("Round", "round", str),
            table.number("Value", "value", lambda v: numbers.quantity(v, unit), csv=f"value_{unit}"),
        ],
        every,
    )
    drawn = {_name(view, name): values for name, values in samples.quantities.items()}
    return [
        chart(
            "samples",
            "Samples by round",
            rounds(drawn, unit),
            twin,
            "Value i of every implementation of a case comes from the same round i.",
        ),
        panel("Summary", table.table("summary", columns, summary)),
    ]


def _name(view: View, quantity: str) -> str:
    return metric_on(view.device, quantity).label if quantity in QUANTITIES else quantity


def _facts(row: dict[str, Any], samples: Samples) -> html.Section:
    pairs: list[tuple[str, Any]] = [
        ("status", row["status"]),
        ("commit", row["commit"]),
        ("committed", moment(row["commit_time"])),
        ("measured", moment(row["started"])),
        ("file", row["source"]),
        ("timer", row["timer"]),
        ("bandwidth", _if(row["bytes_per_s"], "B/s")),
        ("arithmetic rate", _if(row["flops_per_s"], "FLOP/s")),
        ("of the roofline", numbers.percent(row["roofline"]) if row["roofline"] is not None else ""),
        ("bytes a call", _if(row["bytes"], "B")),
        ("operations a call", _if(row["flops"], "")),
        ("peak memory above the inputs", _if(row["peak_memory"], "B")),
        ("of it held between calls", _if(samples.measurement.get("prepared_memory_bytes"), "B")),
        ("energy a call", _if(row["energy"], "J")),
        ("first call", _if(row["first_call"], "s")),
        ("largest error", _if(row["max_abs_error"], "")),
        ("tuned", row["tuned"]),
        ("case digest", row["case_digest"]),
        ("sources digest", row["implementation_digest"]),
    ]
    pairs += [
        (name, _words(value))
        for name, value in samples.measurement.items()
        if name in ("kernels", "resources", "clocks", "notes", "accuracy", "params", "stats")
    ]
    return panel("Measurement", definitions(pairs))


def _if(value: float | None, unit: str) -> str:
    return numbers.quantity(value, unit) if value is not None else ""


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_words(inner)}" for key, inner in value.items() if inner not in (None, "", [], {}))
    if isinstance(value, list):
        return "; ".join(_words(inner) for inner in value)
    return numbers.significant(value, 4) if isinstance(value, float) else str(value)


def _environment(samples: Samples) -> html.Section:
    environment = samples.run.get("environment")
    pairs = (
        environment
        if isinstance(environment, dict)
        else {key: value for key, value in samples.run.items() if key not in ("ladders", "ideas", "missing", "command")}
    )
    return panel("Environment", definitions([(name, _words(value)) for name, value in pairs.items()]))


def _command(row: dict[str, Any], samples: Samples) -> html.Section:
    line = str(samples.run.get("command") or "")
    if not line:
        return panel("Reproduce", html.P("The file does not say how it was made."))
    return panel("Reproduce", command(f"git checkout {row['commit'][:12]}") if row["commit"] else None, command(line))


PAGE = Page("samples", "Samples", simple(draw), ("machine",), in_navigation=False)
