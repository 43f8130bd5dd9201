"""Dash components as plain HTML, for a page that no server stands behind."""

from __future__ import annotations

import html as escaping
import json
import re
from collections.abc import Callable
from typing import Any

from dash import dcc
from dash.development.base_component import Component

Rewrite = Callable[[str], str | None]

_NAMES = {"className": "class", "htmlFor": "for", "tabIndex": "tabindex", "colSpan": "colspan", "rowSpan": "rowspan"}
_NO_ATTRIBUTE = ("children", "n_clicks", "n_clicks_timestamp", "disable_n_clicks", "key")
_ONLINE = re.compile(r"\b(chips|choices|control-host|triage|profiles)\b")  # what asks a server


def to_html(component: Any, rewrite: Rewrite) -> str:
    """HTML of a component tree. ``rewrite`` maps a link to the file's own, or to None where the file lacks the view."""
    if component is None or isinstance(component, bool):
        return ""
    if isinstance(component, (list, tuple)):
        return "".join(to_html(child, rewrite) for child in component)
    if not isinstance(component, Component):
        return escaping.escape(str(component), quote=False)
    if isinstance(component, dcc.Graph):
        return _chart(component, rewrite)
    name = type(component).__name__
    style = str(getattr(component, "className", "") or "")
    if _ONLINE.search(style) or type(component).__module__.startswith("dash.dcc"):
        return ""
    inner = to_html(getattr(component, "children", None), rewrite)
    properties = component.to_plotly_json()["props"]
    if name == "A":
        target = rewrite(str(properties.get("href", "")))
        if target is None:
            return f"<span{_attributes({**properties, 'href': None})}>{inner}</span>"
        properties = {**properties, "href": target}
    for attribute, mapped in (("data-table", _table), ("data-matrix", _matrix)):
        if attribute in properties:
            properties = {**properties, attribute: mapped(properties[attribute], rewrite)}
    tag = name.lower()
    return f"<{tag}{_attributes(properties)}>{inner}</{tag}>"


def _attributes(properties: dict[str, Any]) -> str:
    parts = []
    for name, value in properties.items():
        if name in _NO_ATTRIBUTE or value is None or value is False:
            continue
        if name == "style":
            value = ";".join(f"{_kebab(key)}:{item}" for key, item in value.items())
        elif isinstance(value, dict):
            value = json.dumps(value)
        shown = _NAMES.get(name, name)
        parts.append(f" {shown}" if value is True else f' {shown}="{escaping.escape(str(value))}"')
    return "".join(parts)


def _kebab(name: str) -> str:
    return re.sub(r"[A-Z]", lambda match: f"-{match.group().lower()}", name)


def _chart(graph: dcc.Graph, rewrite: Rewrite) -> str:
    traces = [
        {**trace, "customdata": [rewrite(link) if isinstance(link, str) else link for link in trace["customdata"]]}
        if "customdata" in trace
        else trace
        for trace in graph.figure["data"]
    ]
    data = json.dumps(
        {"figure": {**graph.figure, "data": traces}, "config": graph.config}, ensure_ascii=False, separators=(",", ":")
    )
    height = graph.figure["layout"].get("height", 420)
    return f'<div class="chart" style="height:{height}px" data-figure="{escaping.escape(data)}"></div>'


def _table(source: str, rewrite: Rewrite) -> str:
    """The table with its links mapped; a column none of whose links lead anywhere becomes text."""
    data = json.loads(source)
    for index, column in enumerate(data["columns"]):
        if column["kind"] != "link":
            continue
        for row in data["rows"]:
            text, href = row[index]
            row[index] = [text, rewrite(href)]
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _matrix(source: str, rewrite: Rewrite) -> str:
    data = json.loads(source)
    data["rows"] = [[title, href and rewrite(href)] for title, href in data["rows"]]
    for cell in data["cells"].values():
        cell["href"] = rewrite(cell["href"]) if "href" in cell else None
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
