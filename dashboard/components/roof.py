"""A roofline (Williams, Waterman and Patterson, CACM 2009) with ceilings that were measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.components import numbers
from dashboard.components.figure import Figure, Trace, layout, unit_axis
from dashboard.components.palette import sign

_ROOFS = (("read", "dash"), ("copy", "solid"), ("write", "dot"))
_INK = "#57606a"
ALONE = ("torch_eager", "torch_compile")  # never drawn together with the rest of their back end
MOST_NAMES = 3  # operators named at one place


@dataclass(frozen=True)
class RoofPoint:
    """One measurement: FLOP/byte, FLOP/s, the fraction of its ceiling, bytes/s and the link to its samples."""

    operator: str
    implementation: str
    shape: str
    intensity: float
    rate: float
    share: float | None
    traffic: float
    href: str


def roof(points: Sequence[RoofPoint], ceilings: dict[str, Any], dtype: str, together: bool = False) -> Figure:
    """Points under bandwidth slopes and the matmul rate of the dtype, one trace an implementation.

    ``together`` draws the implementations of a back end as one trace: all operators have dozens between them.
    """

    def name_of(point: RoofPoint) -> str:
        alone = not together or point.implementation in ALONE
        return point.implementation if alone else point.implementation.partition("_")[0]

    names = sorted({name_of(point) for point in points})
    traces = _roofs(points, ceilings, dtype)
    traces += [_marks(name, [point for point in points if name_of(point) == name]) for name in names]
    x = unit_axis("FLOP per byte", "", [x for trace in traces for x in trace["x"]])
    y = unit_axis("arithmetic rate", "FLOP/s", [y for trace in traces for y in trace["y"]])
    return {"data": traces, "layout": layout(x, y, 540, annotations=_names(points))}


def _names(points: Sequence[RoofPoint]) -> list[dict[str, Any]]:
    """The operators over their fastest points."""
    fastest: dict[str, RoofPoint] = {}
    for point in points:
        if point.operator not in fastest or point.rate > fastest[point.operator].rate:
            fastest[point.operator] = point
    together: dict[float, list[RoofPoint]] = {}
    for point in fastest.values():
        together.setdefault(round(math.log10(point.intensity) * 8), []).append(point)
    return [
        {
            "x": math.log10(near[0].intensity),
            "y": math.log10(max(point.rate for point in near)),
            "text": _together(sorted(point.operator for point in near)),
            "showarrow": False,
            "yanchor": "bottom",
            "yshift": 6,
        }
        for near in together.values()
    ]


def _together(names: list[str]) -> str:
    return "<br>".join(names) if len(names) <= MOST_NAMES else f"{len(names)} operators"


def _roofs(points: Sequence[RoofPoint], ceilings: dict[str, Any], dtype: str) -> list[Trace]:
    intensities = [point.intensity for point in points] or [1.0]
    peak = (ceilings.get("matmul") or {}).get(dtype)
    left, right = min(intensities) / 2, max(intensities) * 2
    traces: list[Trace] = []
    for kind, dash in _ROOFS:
        bandwidth = ceilings.get(kind)
        if not bandwidth:
            continue
        ridge = peak / bandwidth if peak else right
        end = min(max(ridge, left), max(right, ridge))
        traces.append(
            _line(
                [left, end], [left * bandwidth, end * bandwidth], dash, f"{kind} {numbers.quantity(bandwidth, 'B/s')}"
            )
        )
    if peak:
        fastest = max((ceilings.get(kind) or 0 for kind, _ in _ROOFS), default=0)
        start = peak / fastest if fastest else left
        traces.append(
            _line(
                [start, max(right, start * 4)],
                [peak, peak],
                "solid",
                f"{dtype} matmul {numbers.quantity(peak, 'FLOP/s')}",
            )
        )
    return traces


def _line(x: list[float], y: list[float], dash: str, name: str) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "name": name,
        "hovertemplate": f"{name}<extra></extra>",
        "line": {"color": _INK, "dash": dash, "width": 1.5},
    }


def _marks(name: str, points: list[RoofPoint]) -> Trace:
    drawn = sign(name)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [point.intensity for point in points],
        "y": [point.rate for point in points],
        "customdata": [point.href for point in points],
        "hovertemplate": "%{text}<extra></extra>",
        "text": [
            f"<b>{p.operator} {p.implementation}</b><br>{p.shape}<br>{numbers.quantity(p.rate, 'FLOP/s')}, "
            f"{numbers.quantity(p.traffic, 'B/s')}<br>{numbers.percent(p.share)} of its ceiling"
            for p in points
        ],
        "marker": {
            "color": drawn.colour,
            "symbol": drawn.marker,
            "size": 8,
            "line": {"width": 0.5, "color": "#ffffff"},
        },
    }
