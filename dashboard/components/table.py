"""Tables that sort, filter and give CSV in the browser, on the server as in an offline file."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dash import html

from dashboard.components.numbers import quantity

Cell = str | tuple[float, str] | tuple[str, str] | None


@dataclass(frozen=True)
class Column:
    """One column: its title, what its cells are, and how a row of the frame becomes a cell.

    ``cell`` returns a string for text, (value, text) or None for a number, (text, href) for a link. ``csv`` is the
    heading in the CSV file, where a number's base unit belongs: "device_cold_s".
    """

    title: str
    cell: Callable[[Mapping[str, Any]], Cell]
    kind: Literal["text", "number", "link"] = "text"
    hint: str = ""
    csv: str = ""
    large: bool = False  # the first click sorts the largest value up


def text(title: str, key: str, hint: str = "") -> Column:
    """A text column: the row's value under ``key``."""
    return Column(title, lambda row: str(row[key] if row[key] is not None else ""), hint=hint)


def number(
    title: str, key: str, show: Callable[[float], str], *, csv: str = "", hint: str = "", large: bool = False
) -> Column:
    """A number column: sorted and downloaded as the value under ``key``, shown through ``show``."""

    def cell(row: Mapping[str, Any]) -> Cell:
        value = row[key]
        return None if value is None or not math.isfinite(value) else (value, show(value))

    return Column(title, cell, "number", hint, csv or key, large)


def measured(title: str, key: str, unit: str = "unit") -> Column:
    """A number column whose unit is in another column of the row: results of other projects bring their own."""

    def cell(row: Mapping[str, Any]) -> Cell:
        value = row[key]
        return None if value is None or not math.isfinite(value) else (value, quantity(value, row[unit] or ""))

    return Column(title, cell, "number", csv=key)


def link(title: str, key: str, href: Callable[[Mapping[str, Any]], str], hint: str = "") -> Column:
    """A column of links one level deeper."""
    return Column(title, lambda row: (str(row[key] if row[key] is not None else ""), href(row)), "link", hint)


def table(
    name: str, columns: Sequence[Column], rows: Iterable[Mapping[str, Any]], sort: tuple[int, int] | None = None
) -> html.Div:
    """A table named ``name`` (its caption and CSV file). ``sort`` is (column, 1 ascending or -1 descending)."""
    body = [[column.cell(row) for column in columns] for row in rows]
    head = [
        {
            key: value
            for key, value in (
                ("title", column.title),
                ("kind", column.kind),
                ("hint", column.hint),
                ("csv", column.csv),
                ("large", column.large),
            )
            if value
        }
        for column in columns
    ]
    data: dict[str, Any] = {"name": name, "columns": head, "rows": body}
    if sort is not None:
        data["sort"] = sort
    return html.Div(className="table", **{"data-table": json.dumps(data, ensure_ascii=False, separators=(",", ":"))})
