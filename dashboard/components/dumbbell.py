"""Ratios of many cases in one strip an operator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dashboard.components import numbers
from dashboard.components.figure import Figure, axis, layout

BETTER, WORSE = "#2166AC", "#B2182B"
ROW, LEAST = 26, 240
_STEPS = (1.005, 1.01, 1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0, 16.0, 256.0)


def ratio_strip(rows: Sequence[dict[str, Any]], left: str, right: str, show: Callable[[float], str]) -> Figure:
    """Rows hold operator, label, left, right, ratio, significant, href. Triangles point to the better side."""
    operators = sorted({str(row["operator"]) for row in rows}, reverse=True)
    hover = [
        f"<b>{row['label']}</b><br>{left}: {show(row['left'])}<br>{right}: {show(row['right'])}<br>"
        f"{numbers.times(row['ratio'])}{'' if row['significant'] is not False else ', intervals touch'}"
        for row in rows
    ]
    symbols = [
        ("triangle-right" if row["ratio"] >= 1 else "triangle-left") + ("" if row["significant"] else "-open")
        for row in rows
    ]
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": [row["ratio"] for row in rows],
        "y": [str(row["operator"]) for row in rows],
        "text": hover,
        "customdata": [row["href"] for row in rows],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"size": 10, "symbol": symbols, "color": [BETTER if row["ratio"] >= 1 else WORSE for row in rows]},
    }
    ratios = [row["ratio"] for row in rows]
    low, high = min(0.97, *ratios), max(1.03, *ratios)
    ticks = _ticks(low, high)
    x = axis("ratio", type="log", tickvals=ticks, ticktext=[f"{tick:.4g}×" for tick in ticks])
    y = axis("", type="category", categoryorder="array", categoryarray=operators)
    line = {
        "type": "line",
        "x0": 1,
        "x1": 1,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"width": 1.5, "color": "#57606a"},
    }
    height = max(LEAST, ROW * len(operators) + 90)
    return {"data": [trace], "layout": layout(x, y, height, shapes=[line], showlegend=False)}


def _ticks(low: float, high: float) -> list[float]:
    """1× and steps to either side, coarse enough for the range."""
    reach = max(math.log2(high), -math.log2(low))
    for step in _STEPS:
        count = int(reach / math.log2(step))
        if count <= 4:
            break
    return [step**power for power in range(-count - 1, count + 2) if low / 1.02 <= step**power <= high * 1.02]
