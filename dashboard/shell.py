"""What stands around every page: the head with the machine, the filter bar, the foot with what was read."""

from __future__ import annotations

from typing import Any

from dash import html

from dashboard.components import controls
from dashboard.components.parts import age, moment, short
from dashboard.frames import Frames
from dashboard.newest import newest_run
from dashboard.pages import PAGES, Page
from dashboard.state import State
from dashboard.view import View, device_label, machine_details, machine_names, metric_on, project_names


def header(state: State, view: View | None, page: Page | None) -> list[Any]:
    """Name, navigation, the device in words, theme and link buttons."""
    links = [
        html.Li(
            html.A(
                each.title,
                href=state.to(each.name, operator=state.get("operator")),
                **({"aria-current": "page"} if page is each else {}),
            )
        )
        for each in PAGES.values()
        if each.in_navigation
    ]
    return [
        html.A([html.Span("▲ ", **{"aria-hidden": "true"}), "groundspeed"], href=state.to(""), className="brand"),
        html.Nav(html.Ul(links), **{"aria-label": "Pages"}),
        html.Div(
            [
                html.Span(device_label(view.device), className="device", title=view.machine) if view else None,
                html.Button("Copy link", type="button", **{"data-copy": "link"}),
                html.Button(
                    "◐",
                    type="button",
                    title="Light or dark",
                    **{"data-theme-switch": "", "aria-label": "Switch between light and dark"},
                ),
            ],
            className="side",
        ),
    ]


def filters(page: Page | None, view: View | None) -> Any:
    """The shared filters that mean something on this page."""
    if page is None or view is None or not page.controls:
        return None
    shown = [_CONTROLS[name](view) for name in page.controls]
    return html.Details(
        [html.Summary("Filters"), html.Div([each for each in shown if each is not None], className="bar")],
        open=True,
        className="filters",
    )


def footer(frames: Frames, view: View | None) -> list[Any]:
    """Where the data come from, how old they are and what could not be read."""
    snapshot = frames.snapshot
    said: list[Any] = [f"{snapshot.rows:,} measurements from {snapshot.runs.height:,} files in {snapshot.results}. "]
    if view is not None:
        newest = newest_run(view)
        if newest:
            said.append(
                f"Newest of {view.machine}: {age(newest['started'])} ({moment(newest['started'])}), "
                f"commit {short(newest['commit'])}. "
            )
    if snapshot.problems.height:
        state = view.state if view else State()
        said.append(html.A(f"{snapshot.problems.height} files could not be read.", href=state.to("data")))
    return said


def _machine(view: View) -> Any:
    names = machine_names(view.frames)
    options = [(name, f"{name} · {device_label(machine_details(view.frames, name))}") for name in names]
    return controls.select("machine", "Machine", options, view.machine, names[0], "project metric baseline dtype run")


def _project(view: View) -> Any:
    names = project_names(view.frames, view.machine)
    if len(names) < 2:
        return None
    usual = "groundspeed" if "groundspeed" in names else names[0]
    return controls.select(
        "project", "Results", [(n, n) for n in names], view.project, usual, "metric baseline dtype operator shape"
    )


def _metric(view: View) -> Any:
    metrics = view.frames.metrics(view.machine, view.project)
    if len(metrics) < 2:
        return None
    options = [(m.name, metric_on(view.device, m.name).label) for m in metrics]
    return controls.select("metric", "Metric", options, view.metric.name, metrics[0].name)


def _baseline(view: View) -> Any:
    names = view.frames.choices(view.machine, view.project, "implementation")
    if not names:
        return None
    usual = "torch_eager" if "torch_eager" in names else names[0]
    return controls.select("baseline", "Baseline", [(n, n) for n in names], view.baseline, usual)


def _dtype(view: View) -> Any:
    names = view.frames.choices(view.machine, view.project, "dtype")
    if len(names) < 2:
        return None
    return controls.select("dtype", "Dtype", [("", "all dtypes"), *((n, n) for n in names)], view.dtype)


def _operator(view: View) -> Any:
    names = view.operators()
    label = "Operator" if view.ours else "Benchmark"
    return controls.select(
        "operator", label, [(n, n) for n in names], view.operator(), names[0] if names else "", "shape case"
    )


_CONTROLS = {
    "machine": _machine,
    "project": _project,
    "metric": _metric,
    "baseline": _baseline,
    "dtype": _dtype,
    "operator": _operator,
}
