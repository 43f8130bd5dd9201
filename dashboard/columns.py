"""Columns of plain text that fit a terminal: what is too long loses its middle, since names differ at their ends."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Collection, Sequence

WIDTH = 80
GAP = "  "
INDENT = "    "


def width(text: str) -> int:
    """Columns a text takes: wide East Asian characters two, combining ones none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def clip(text: str, columns: int) -> str:
    """The text, or its two ends about an ellipsis where it takes more than so many columns (at least 1)."""
    if width(text) <= columns:
        return text
    head, tail = text[: len(text) // 2], text[len(text) // 2 :]
    while head + tail and width(head) + width(tail) > columns - 1:
        if width(head) > width(tail):
            head = head[:-1]
        else:
            tail = tail[1:]
    return f"{head}…{tail}"


def widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Columns that each column of the rows takes."""
    return [max(map(width, column)) for column in zip(*rows, strict=True)]


def total(taken: Sequence[int]) -> int:
    """Columns that a row of such columns takes."""
    return sum(taken) + len(GAP) * (len(taken) - 1)


def aligned(rows: Sequence[Sequence[str]], flexible: Collection[int] = ()) -> list[str]:
    """The rows as lines; the widest of the ``flexible`` columns are clipped until a line fits in ``WIDTH``."""
    room = widths(rows)
    while flexible and total(room) > WIDTH:
        widest = max(flexible, key=lambda i: room[i])
        if room[widest] == 1:
            break
        room[widest] -= 1
    return [_line([clip(text, columns) for text, columns in zip(row, room, strict=True)], room) for row in rows]


def wrapped(text: str, indent: str = "") -> list[str]:
    """A sentence in as many lines as it takes; a word that is longer than a line is broken."""
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent or INDENT)


def _line(row: Sequence[str], room: Sequence[int]) -> str:
    return GAP.join(text + " " * (columns - width(text)) for text, columns in zip(row, room, strict=True)).rstrip()
