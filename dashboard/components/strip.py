"""Samples in the order in which they were taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dashboard.components.figure import Figure, axis, layout, unit_axis

_SIGNS = (("#0072B2", "circle"), ("#D55E00", "square"), ("#009E73", "diamond"), ("#CC79A7", "x"))


def rounds(samples: Mapping[str, Sequence[float]], unit: str) -> Figure:
    """One trace a quantity; a log axis, since quantities differ by orders of magnitude."""
    traces = []
    for (name, values), (colour, symbol) in zip(samples.items(), _SIGNS * 4, strict=False):
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": name,
                "x": list(range(len(values))),
                "y": list(values),
                "marker": {"color": colour, "symbol": symbol, "size": 6},
                "hovertemplate": f"{name}, round %{{x}}: %{{y:.4s}}{unit}<extra></extra>",
            }
        )
    every = [value for values in samples.values() for value in values]
    return {"data": traces, "layout": layout(axis("round"), unit_axis("", unit, every, log=min(every) > 0), 360)}
