"""Small parts that every page uses."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from dash import html


def panel(title: str, *children: Any, note: str = "", identity: str = "") -> html.Section:
    """A titled block of a page."""
    more = {"id": identity} if identity else {}
    return html.Section(
        [html.H2(title), html.P(note, className="note") if note else None, *children], className="panel", **more
    )


def tile(label: str, value: Any, below: Any = "", href: str = "", tone: str = "") -> html.Div:
    """One figure that matters, with what it is counted from."""
    shown = html.A(value, href=href) if href else value
    return html.Div(
        [html.Span(label, className="label"), html.Span(shown, className="value"), html.Span(below, className="below")],
        className=f"tile {tone}".strip(),
    )


def empty(title: str, *lines: Any) -> html.Section:
    """A view without data says why, and what to type to get some."""
    return html.Section([html.H2(title), *(html.P(line) for line in lines)], className="panel empty")


def command(text: str) -> html.Div:
    """A command line to copy."""
    return html.Div(
        [html.Code(text), html.Button("Copy", type="button", **{"data-copy": text, "aria-label": f"Copy: {text}"})],
        className="command",
    )


def definitions(pairs: list[tuple[str, Any]]) -> html.Dl:
    """Names and values; pairs without a value are left out."""
    return html.Dl(
        [part for name, value in pairs if value not in (None, "") for part in (html.Dt(name), html.Dd(value))]
    )


def moment(when: datetime | None) -> str:
    """A time as the file gives it, in UTC, to the minute."""
    return when.strftime("%Y-%m-%d %H:%M UTC") if when else "–"


def age(when: datetime | None, now: datetime | None = None) -> str:
    """How long ago, in the largest fitting unit."""
    if when is None:
        return "unknown"
    seconds = ((now or datetime.now(UTC)) - when).total_seconds()
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return "just now"


def short(commit: str | None) -> str:
    """The first eight digits of a commit, or a dash."""
    return (commit or "")[:8] or "–"
