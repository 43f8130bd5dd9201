"""Values over commits, with intervals, levels between change points, and what changed around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.components import numbers
from dashboard.components.figure import Figure, Trace, axis, layout, unit_axis
from dashboard.components.palette import sign
from dashboard.regressions import Change
from dashboard.store import Metric

MOST_TICKS = 12
WIDE = 20  # series further apart than this are drawn on a log scale


@dataclass(frozen=True)
class CommitPoint:
    """One measurement of one series at one commit (``ordinal``)."""

    label: str
    ordinal: int
    value: float
    low: float | None
    high: float | None
    commit: str
    when: str
    n: int | None
    href: str
    events: tuple[str, ...]
    split: bool  # a new series begins here: no line leads to it
    unstable: bool
    implementation: str
    software: str


def timeline(points: Sequence[CommitPoint], changes: Sequence[Change], metric: Metric, unit: str) -> Figure:
    """One line a series in commit order."""
    labels = list(dict.fromkeys(point.label for point in points))
    traces: list[Trace] = []
    for label in labels:
        own = [point for point in points if point.label == label]
        traces += _band(own)
        traces.append(_line(own, unit))
    traces += [trace for change in changes if (trace := _mark(change, points, unit)) is not None]
    x = axis("commit", **_ticks(points))
    values = [point.value for point in points]
    wide = min(values) > 0 and max(values) > WIDE * min(values)
    y = unit_axis(metric.label, unit, values, log=wide)
    return {"data": traces, "layout": layout(x, y, shapes=_events(points))}


def _ticks(points: Sequence[CommitPoint]) -> dict[str, Any]:
    commits = {point.ordinal: point for point in points}
    ordinals = sorted(commits)
    step = max(1, -(-len(ordinals) // MOST_TICKS))
    shown = ordinals[::-1][::step][::-1]
    return {
        "tickvals": shown,
        "ticktext": [f"{commits[o].commit[:8]}<br>{commits[o].when[:10]}" for o in shown],
        "range": [ordinals[0] - 0.5, ordinals[-1] + 0.5],
    }


def _line(points: list[CommitPoint], unit: str) -> Trace:
    drawn = sign(points[0].implementation or points[0].label)
    xs: list[float | None] = []
    ys: list[float | None] = []
    hrefs: list[str | None] = []
    texts: list[str | None] = []
    symbols: list[str] = []
    for point in points:
        if point.split and xs:
            xs.append(None)
            ys.append(None)
            hrefs.append(None)
            texts.append(None)
            symbols.append(drawn.marker)
        xs.append(point.ordinal)
        ys.append(point.value)
        hrefs.append(point.href)
        symbols.append(f"{drawn.marker}-open" if point.unstable else drawn.marker)
        n = f" n={point.n}" if point.n else ""
        texts.append(
            f"<b>{point.label}</b><br>{point.commit[:12]} {point.when}<br>{numbers.quantity(point.value, unit)} "
            f"{numbers.spread(point.value, point.low, point.high)}{n}"
            + "".join(f"<br>{line}" for line in (point.software, *point.events) if line)
        )
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": points[0].label,
        "x": xs,
        "y": ys,
        "customdata": hrefs,
        "text": texts,
        "hovertemplate": "%{text}<extra></extra>",
        "connectgaps": False,
        "line": {"color": drawn.colour, "dash": drawn.dash, "width": 1.5},
        "marker": {"color": drawn.colour, "symbol": symbols, "size": 7 if len(points) <= 200 else 4},
    }


def _band(points: list[CommitPoint]) -> list[Trace]:
    known = [point for point in points if point.low is not None and point.high is not None]
    if len(known) < 2:
        return []
    colour = sign(points[0].implementation or points[0].label).colour
    xs = [point.ordinal for point in known]
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "x": xs + xs[::-1],
            "y": [point.high for point in known] + [point.low for point in known][::-1],
            "fill": "toself",
            "fillcolor": f"{colour}33",
            "line": {"width": 0},
            "hoverinfo": "skip",
            "showlegend": False,
        }
    ]


def _mark(change: Change, points: Sequence[CommitPoint], unit: str) -> Trace | None:
    names = (change.implementation or change.environment,)
    own = [p for p in points if p.label in names]
    at = next((p for p in own if p.commit == change.commit), None)
    if at is None:
        return None
    before = [p.ordinal for p in own if p.ordinal < at.ordinal]
    after = [p.ordinal for p in own if p.ordinal >= at.ordinal]
    left, right = (before[0] if before else at.ordinal), after[-1]
    by = next((p.ordinal for p in own if p.commit == change.by), at.ordinal)
    # A step is upright before its first commit; a drift slopes from its first commit to its last.
    bends = [at.ordinal, by] if change.kind == "drift" else [at.ordinal - 0.5, at.ordinal - 0.5]
    drawn = sign(change.implementation or change.environment)
    word = "worse" if change.worse > 0 else "better"
    text = (
        f"<b>{change.kind}</b> {numbers.percent(abs(change.worse))} {word}<br>"
        f"{numbers.quantity(change.before, unit)} → {numbers.quantity(change.after, unit)}"
    )
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [left, *bends, right],
        "y": [change.before, change.before, change.after, change.after],
        "text": text,
        "hoverinfo": "text",
        "line": {"color": drawn.colour, "width": 3},
        "opacity": 0.55,
        "showlegend": False,
        "name": "level",
    }


def _events(points: Sequence[CommitPoint]) -> list[dict[str, Any]]:
    at = sorted({point.ordinal for point in points if any(e.startswith("environment") for e in point.events)})
    return [
        {
            "type": "line",
            "x0": x - 0.5,
            "x1": x - 0.5,
            "yref": "paper",
            "y0": 0,
            "y1": 1,
            "line": {"dash": "dot", "width": 1.5, "color": "#8C6D31"},
        }
        for x in at
    ]
