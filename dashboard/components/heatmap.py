"""Matrices of links: speedups by colour and by number, with what is missing told apart.

An HTML table rather than a drawn heat-map: each cell is a link that a keyboard reaches and a screen reader reads.
assets/4_matrices.js draws it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dash import html

from dashboard.components.palette import sign, speedup_colour


@dataclass(frozen=True)
class MatrixCell:
    """One cell: its text, a second line, the log2 of its speedup if it has one, the link and the tooltip.

    ``kind`` is "ok", "skipped", "failed" or "none" (not run).
    """

    text: str
    kind: str = "ok"
    log2: float | None = None
    below: str = ""
    href: str = ""
    hint: str = ""
    best: bool = False


def matrix(
    name: str,
    corner: str,
    rows: Sequence[tuple[str, str]],
    columns: Sequence[str],
    cells: Mapping[tuple[str, str], MatrixCell],
) -> html.Div:
    """``rows`` are (name, link). Cells not in ``cells`` were not run and stay blank."""
    drawn = {
        f"{i},{j}": _cell(cells[row, column])
        for i, (row, _) in enumerate(rows)
        for j, column in enumerate(columns)
        if (row, column) in cells
    }
    data = {
        "name": name,
        "corner": corner,
        "rows": list(rows),
        "columns": [(column, sign(column).colour) for column in columns],
        "cells": drawn,
    }
    return html.Div(**{"data-matrix": json.dumps(data, ensure_ascii=False, separators=(",", ":"))})


def legend() -> html.P:
    """What the marks of a matrix mean."""
    return html.P(
        [
            _key("slower", -2.5),
            _key("1×", 0),
            _key("faster", 2.5),
            html.Span("★ fastest"),
            html.Span("≈ interval stayed wide"),
            html.Span("skipped", className="key skipped"),
            html.Span("✕ failed", className="key failed"),
            html.Span("blank: not run"),
        ],
        className="legend",
    )


def _paint(log2: float) -> tuple[str, str, str, str]:
    """Background and text in the light, then in the dark."""
    return (*speedup_colour(log2), *speedup_colour(log2, dark=True))


def _key(text: str, log2: float) -> html.Span:
    names = ("--light", "--light-ink", "--dark", "--dark-ink")
    return html.Span(text, className="key painted", style=dict(zip(names, _paint(log2), strict=True)))


def _cell(cell: MatrixCell) -> dict[str, Any]:
    """The cell as the script draws it; what is empty is left out."""
    data = {
        "text": cell.text,
        "kind": cell.kind,
        "below": cell.below,
        "href": cell.href,
        "hint": cell.hint,
        "best": cell.best,
        "paint": _paint(cell.log2) if cell.log2 is not None else None,
    }
    return {key: value for key, value in data.items() if value or key == "text"}
