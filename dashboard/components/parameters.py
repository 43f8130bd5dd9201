"""Values over one parameter of a foreign benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.components import numbers
from dashboard.components.figure import Figure, axis, layout, unit_axis

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6B7280", "#7B4173", "#8C6D31")
_MARKERS = ("circle", "square", "diamond", "triangle-up", "x", "star", "triangle-down", "pentagon")


@dataclass(frozen=True)
class FacetPoint:
    """One combination: the line it belongs to, the parameter's value, the result and its interval."""

    line: str
    at: Any
    value: float
    low: float | None
    high: float | None
    href: str


def by_parameter(points: Sequence[FacetPoint], along: str, label: str, unit: str) -> Figure:
    """One line a combination of the other parameters; a linear axis where the parameter is a number."""
    lines = list(dict.fromkeys(point.line for point in points))
    numeric = all(_number(point.at) is not None for point in points)
    traces = []
    for index, line in enumerate(lines):
        own = [point for point in points if point.line == line]
        if numeric:
            own.sort(key=lambda point: _number(point.at) or 0.0)
        colour = _COLOURS[index % len(_COLOURS)]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if numeric else "markers",
                "name": line,
                "x": [_number(p.at) if numeric else str(p.at) for p in own],
                "y": [p.value for p in own],
                "customdata": [p.href for p in own],
                "hovertemplate": "%{text}<extra></extra>",
                "text": [
                    f"<b>{line}</b><br>{along}={p.at}<br>{numbers.quantity(p.value, unit)} "
                    f"{numbers.spread(p.value, p.low, p.high)}"
                    for p in own
                ],
                "line": {"color": colour, "width": 1.5},
                "marker": {"color": colour, "symbol": _MARKERS[index % len(_MARKERS)], "size": 8},
            }
        )
    x = axis(along) if numeric else axis(along, type="category")
    y = unit_axis(f"{label} ({unit})" if unit else label, unit, log=False)
    return {"data": traces, "layout": layout(x, {**y, "rangemode": "tozero"}, showlegend=len(lines) > 1)}


def _number(value: Any) -> float | None:
    try:
        return float(str(value).strip("'\""))
    except ValueError:
        return None
