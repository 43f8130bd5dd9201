"""Ladders: implementations in the order of their ideas, and what each step changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dash import html

from dashboard.components import numbers
from dashboard.components.palette import sign
from dashboard.store import Metric


def rungs(
    name: str,
    steps: Sequence[str],
    values: Mapping[str, Mapping[str, Any]],
    ideas: Mapping[str, str],
    metric: Metric,
    unit: str,
) -> html.Div:
    """One ladder: a bar a rung, the value, the gain over the rung before and over the first."""
    known = {step: float(values[step][metric.name]) for step in steps if step in values}
    top = max(known.values(), default=1.0) or 1.0
    items = []
    first: float | None = None
    before: float | None = None
    for step in steps:
        value = known.get(step)
        items.append(
            _rung(
                step, ideas.get(step, ""), value, top, _gain(before, value, metric), _gain(first, value, metric), unit
            )
        )
        if value is not None:
            first = value if first is None else first
            before = value
    return html.Div([html.H3(name), html.Ol(items, className="ladder")])


def _gain(before: float | None, after: float | None, metric: Metric) -> float | None:
    if not before or not after:
        return None
    return after / before if metric.direction == "higher" else before / after


def _rung(
    step: str, idea: str, value: float | None, top: float, gain: float | None, total: float | None, unit: str
) -> html.Li:
    width = f"{(value or 0) / top * 100:.1f}%"
    note = (
        "not measured in this case"
        if value is None
        else (f"{numbers.times(gain)} over the rung before, {numbers.times(total)} in all" if gain else "first rung")
    )
    return html.Li(
        [
            html.Span([html.Strong(step), html.Span(idea, className="below")], className="what"),
            html.Span(
                html.Span(style={"width": width, "backgroundColor": sign(step).colour}),
                className="track",
                **{"aria-hidden": "true"},
            ),
            html.Span(numbers.quantity(value, unit), className="number"),
            html.Span(note, className="below"),
        ]
    )
