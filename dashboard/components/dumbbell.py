"""Ratios of many cases in one strip an operator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dashboard.components import numbers
from dashboard.components.figure import Figure, axis, layout

BETTER, WORSE = "#2166AC", "#B2182B"
ROW, LEAST = 26, 240
MOST = 4  # ticks to either side of 1×
_STEPS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25)


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
    margin = 0.03 * math.log10(high / low)
    ticks = _ticks(low, high)
    x = axis(
        "ratio",
        type="log",
        range=[math.log10(low) - margin, math.log10(high) + margin],
        tickvals=ticks,
        ticktext=[f"{tick:.4g}×" for tick in ticks],
    )
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
    """1× and a few round values to either side: even steps while the range is small, powers of 2 beyond."""
    reach = max(high, 1 / low)
    if reach < 2:
        step = next(step for step in _STEPS if (reach - 1) / step <= MOST)
        ticks = [1 + step * count for count in range(-MOST, MOST + 1)]
    else:
        base = 2.0 ** math.ceil(math.log2(reach) / MOST)
        ticks = [base**power for power in range(-MOST, MOST + 1)]
    return [tick for tick in ticks if low <= tick * 1.002 and tick <= high * 1.002]
