"""Charts as plain dictionaries in plotly's format, each with its table twin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from dashboard.components import numbers

MOST_TICKS = 12
Figure = dict[str, Any]
Trace = dict[str, Any]

CONFIG = {
    "displaylogo": False,
    "showSendToCloud": False,  # plotly 7 puts a button on every chart that uploads its data
    "plotlyServerURL": "",
    "responsive": True,
    "modeBarButtonsToRemove": ["lasso2d", "select2d", "autoScale2d"],
    "toImageButtonOptions": {"format": "svg", "filename": "groundspeed"},
}
_INK, _LINE = "#57606a", "#d0d7de"  # both themes repaint text and lines in assets/groundspeed.css


def axis(title: str, **more: Any) -> dict[str, Any]:
    """An axis with a thin grid."""
    return {
        "title": {"text": title, "font": {"size": 12}},
        "gridcolor": _LINE,
        "zeroline": False,
        "linecolor": _LINE,
        "automargin": True,
        "tickfont": {"size": 11},
        **more,
    }


def unit_axis(title: str, unit: str, values: Sequence[float] = (), log: bool = True) -> dict[str, Any]:
    """An axis in a base unit. A log axis over ``values`` is ticked at 1, 2 and 5 (bytes: at powers of 4), in words."""
    if not log:
        suffix = {"1": "", "1/s": "/s", "seconds": "s", "bytes": "B"}.get(unit, unit)
        form = {"tickformat": ".0%"} if unit == "1" else {"tickformat": "~s", "ticksuffix": suffix} if unit else {}
        return axis(title, **form)
    ticks = log_ticks(min(values), max(values), 4.0 if unit == "B" else 10.0) if values else []
    words = [_tick(tick, unit) for tick in ticks]
    return axis(title, type="log", **({"tickvals": ticks, "ticktext": words} if ticks else {}))


def log_ticks(low: float, high: float, base: float) -> list[float]:
    """Round values over a range of positive numbers: 1-2-5 steps, decades alone when those are many."""
    exponents = range(math.floor(math.log(low, base)) - 1, math.ceil(math.log(high, base)) + 2)
    fine = (1.0, 2.0, 5.0) if base == 10.0 else (1.0,)
    for steps in (fine, (1.0,)):
        ticks = [base**exponent * step for exponent in exponents for step in steps]
        inside = [tick for tick in ticks if low / 2.6 <= tick <= high * 2.6]
        if len(inside) <= MOST_TICKS:
            return inside
    return inside[:: -(-len(inside) // MOST_TICKS)]


def _tick(value: float, unit: str) -> str:
    text = numbers.quantity(value, unit)
    number, _, rest = text.partition(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {rest}".rstrip()


def layout(x: dict[str, Any], y: dict[str, Any], height: int = 420, **more: Any) -> dict[str, Any]:
    """The look every chart shares. assets/7_patch.js adds the ``uirevision`` that keeps a zoom over refreshes."""
    return {
        "xaxis": x,
        "yaxis": y,
        "height": height,
        "margin": {"l": 56, "r": 16, "t": 12, "b": 44},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": _INK},
        "hoverlabel": {"align": "left", "font": {"family": "system-ui, sans-serif", "size": 12}},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.01, "x": 0, "font": {"size": 12}},
        "hovermode": "closest",
        "modebar": {"bgcolor": "rgba(0,0,0,0)"},  # plotly makes it an opaque grey from a transparent paper
        "dragmode": "zoom",
        **more,
    }


def chart(name: str, title: str, figure: Figure, twin: html.Div, note: str = "") -> html.Figure:
    """A chart under its title, with the note that says what it means and the table that says the same in numbers."""
    points = sum(len(trace.get("x", ())) for trace in figure["data"])
    graph = dcc.Graph(
        id={"chart": name},
        figure=figure,
        config=CONFIG,
        responsive=True,
        style={"height": f"{figure['layout'].get('height', 420)}px"},
        className="chart",
    )
    return html.Figure(
        [
            html.Figcaption([html.H2(title), html.P(note, className="note") if note else None]),
            html.Div(
                graph,
                role="group",
                **{"aria-label": f"{title}: chart of {points} points; the table below it has the same"},
            ),
            html.Details([html.Summary("Table and CSV"), twin], id=f"twin-{name}"),
        ],
        className="panel",
    )
