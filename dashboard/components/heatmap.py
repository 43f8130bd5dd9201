"""Matrices of links: speedups by colour and by number, with what is missing told apart.

An HTML table rather than a drawn heat-map: each cell is a link that a keyboard reaches and a screen reader reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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


NOT_RUN = MatrixCell("", "none", hint="not run")


def matrix(
    name: str,
    corner: str,
    rows: Sequence[tuple[str, str]],
    columns: Sequence[str],
    cells: Mapping[tuple[str, str], MatrixCell],
) -> html.Div:
    """``rows`` are (name, link). Cells not in ``cells`` were not run and stay blank."""
    head = html.Tr(
        [html.Th(corner, scope="col")]
        + [html.Th(html.Span([_swatch(column), column]), scope="col", title=column) for column in columns]
    )
    body = [
        html.Tr(
            [html.Th(html.A(row, href=href) if href else row, scope="row")]
            + [_cell(cells.get((row, column), NOT_RUN)) for column in columns]
        )
        for row, href in rows
    ]
    return html.Div(
        html.Table([html.Caption(name, className="hidden"), html.Thead(head), html.Tbody(body)], className="matrix"),
        className="scroll",
        tabIndex="0",
        role="region",
        **{"aria-label": name},
    )


def legend() -> html.P:
    """What the marks of a matrix mean."""
    return html.P(
        [
            html.Span("slower", className="key painted", style=_paint(-2.5)),
            html.Span("1×", className="key painted", style=_paint(0)),
            html.Span("faster", className="key painted", style=_paint(2.5)),
            html.Span("★ fastest"),
            html.Span("≈ interval stayed wide"),
            html.Span("skipped", className="key skipped"),
            html.Span("✕ failed", className="key failed"),
            html.Span("blank: not run"),
        ],
        className="legend",
    )


def _swatch(column: str) -> html.Span:
    return html.Span("● ", style={"color": sign(column).colour}, **{"aria-hidden": "true"})


def _paint(log2: float | None) -> dict[str, str]:
    if log2 is None:
        return {}
    light, dark = speedup_colour(log2), speedup_colour(log2, dark=True)
    return {"--light": light[0], "--light-ink": light[1], "--dark": dark[0], "--dark-ink": dark[1]}


def _cell(cell: MatrixCell) -> html.Td:
    content = [html.Span(f"★ {cell.text}" if cell.best else cell.text, className="main")]
    if cell.below:
        content.append(html.Span(cell.below, className="below"))
    inner = html.A(content, href=cell.href, title=cell.hint) if cell.href else html.Span(content, title=cell.hint)
    return html.Td(
        inner,
        className=" ".join(
            part for part in ("cell", cell.kind, "best" * cell.best, "painted" * (cell.log2 is not None)) if part
        ),
        style=_paint(cell.log2),
    )
