"""Lines over sizes: one implementation a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.components import numbers
from dashboard.components.figure import Figure, Trace, layout, unit_axis
from dashboard.components.palette import sign
from dashboard.store import Metric


@dataclass(frozen=True)
class SizePoint:
    """One measurement: bytes a call moves, the value and its interval, what hover and click need."""

    implementation: str
    size: float
    value: float
    low: float | None
    high: float | None
    shape: str
    href: str
    n: int
    speedup: float | None
    unstable: bool
    commit: str


def time_against_size(points: Sequence[SizePoint], metric: Metric, unit: str, baseline: str) -> Figure:
    """Log-log lines with intervals; one trace an implementation, in the order of the points."""
    names = list(dict.fromkeys(point.implementation for point in points))
    traces = [_trace([p for p in points if p.implementation == name], unit, baseline) for name in names]
    values = [point.value for point in points]
    sizes = [point.size for point in points]
    y = unit_axis(metric.label, unit, values, log=min(values) > 0)
    return {"data": traces, "layout": layout(unit_axis("bytes a call", "B", sizes), y)}


def _trace(points: list[SizePoint], unit: str, baseline: str) -> Trace:
    drawn = sign(points[0].implementation)
    hover = [
        f"<b>{point.implementation}</b> {point.shape}<br>{numbers.quantity(point.value, unit)} "
        f"{numbers.spread(point.value, point.low, point.high)} n={point.n}<br>"
        f"{numbers.times(point.speedup)} over {baseline}{'<br>≈ interval stayed wide' if point.unstable else ''}"
        f"<br>commit {point.commit[:8] or 'unknown'}"
        for point in points
    ]
    trace: Trace = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": points[0].implementation,
        "x": [point.size for point in points],
        "y": [point.value for point in points],
        "customdata": [point.href for point in points],
        "text": hover,
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"color": drawn.colour, "dash": drawn.dash, "width": 1.5},
        "marker": {
            "color": drawn.colour,
            "size": 8,
            "symbol": [f"{drawn.marker}-open" if point.unstable else drawn.marker for point in points],
        },
    }
    if any(point.low is not None for point in points):
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "thickness": 1,
            "width": 2,
            "color": drawn.colour,
            "array": [(point.high or point.value) - point.value for point in points],
            "arrayminus": [point.value - (point.low or point.value) for point in points],
        }
    return trace


@dataclass(frozen=True)
class BatchPoint:
    """One measurement of a growing batch: items a call, items a second, seconds a call."""

    implementation: str
    items: float
    throughput: float
    latency: float
    shape: str
    href: str


def latency_against_throughput(points: Sequence[BatchPoint], latency: str) -> Figure:
    """One line an implementation, in the order of its points; ``latency`` is what the latency is called."""
    traces = []
    for name in dict.fromkeys(point.implementation for point in points):
        own = [point for point in points if point.implementation == name]
        drawn = sign(name)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": name,
                "x": [point.throughput for point in own],
                "y": [point.latency for point in own],
                "customdata": [point.href for point in own],
                "text": [
                    f"<b>{name}</b> {point.shape}<br>{numbers.significant(point.items)} items in "
                    f"{numbers.quantity(point.latency, 's')}: {numbers.quantity(point.throughput, '1/s')}"
                    for point in own
                ],
                "hovertemplate": "%{text}<extra></extra>",
                "line": {"color": drawn.colour, "dash": drawn.dash, "width": 1.5},
                "marker": {"color": drawn.colour, "symbol": drawn.marker, "size": 8},
            }
        )
    x = unit_axis("items a second", "1/s", [point.throughput for point in points])
    y = unit_axis(latency.lower().replace("l2", "L2"), "s", [point.latency for point in points])
    return {"data": traces, "layout": layout(x, y)}
