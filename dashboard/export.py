"""The dashboard's views in one HTML file that asks no server for anything."""

from __future__ import annotations

import html as escaping
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dashboard.app import ASSETS, PLOTLY
from dashboard.components.parts import moment
from dashboard.frames import Frames
from dashboard.offline_html import to_html
from dashboard.pages import PAGES
from dashboard.regressions import prepare
from dashboard.state import State, parse_state
from dashboard.view import View, device_label, machine_names, metric_on, resolve
from groundspeed.whole_files import replace_whole

SCRIPTS = ("0_mount.js", "1_state.js", "2_theme.js", "3_tables.js", "4_matrices.js", "offline/views.js")
PER_MACHINE = ("", "compare", "roofline", "regressions", "data")
PER_OPERATOR = ("operator", "history")
ONCE = ("claims",)
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
OVERVIEW_METRICS = ("device_hot", "call", "peak_memory")


@dataclass(frozen=True)
class Shown:
    """One view of the file: where it is in it, its link in the running dashboard, and how the menu names it."""

    identity: str
    state: State
    title: str


def write_export(frames: Frames, path: Path, repository: Path) -> int:
    """Write the file whole or not at all; the number of views in it. Raises OSError as it comes."""
    views = list(_views(frames))
    document = _document(frames, views, repository)
    replace_whole(path, document.encode())
    return len(views)


def _views(frames: Frames) -> Iterator[Shown]:
    number = 0

    def shown(page: str, title: str, **params: str) -> Shown:
        nonlocal number
        number += 1
        return Shown(f"view-{number}", State(page, params), title)

    for machine in machine_names(frames):
        for page in PER_MACHINE:
            yield shown(page, PAGES[page].title, machine=machine)
        view = resolve(State("", {"machine": machine}), frames)
        if view is None:
            continue
        known = {metric.name for metric in frames.metrics(machine, view.project)}
        for name in OVERVIEW_METRICS:
            if name in known:
                yield shown("", f"Overview: {metric_on(view.device, name).label.lower()}", machine=machine, metric=name)
        for operator in view.operators():
            for page in PER_OPERATOR:
                yield shown(
                    page, f"{operator}{'' if page == 'operator' else ', history'}", machine=machine, operator=operator
                )
    for page in ONCE:
        yield shown(page, PAGES[page].title)


def _document(frames: Frames, views: list[Shown], repository: Path) -> str:
    first = machine_names(frames)[0] if machine_names(frames) else ""
    index = {_key(view.state, first): view.identity for view in views}

    def rewrite(href: str) -> str | None:
        if href.startswith("#"):
            return href
        parts = urlsplit(href)
        target = index.get(_key(parse_state(parts.path, parts.query), first))
        return f"#{target}" if target else None

    templates = "".join(
        f'<template id="{view.identity}" data-title="{escaping.escape(view.title)}" '
        f'data-machine="{escaping.escape(view.state.get("machine"))}">'
        f"{_content(frames, view.state, repository, rewrite)}</template>"
        for view in views
    )
    return _FILE.format(
        policy=POLICY,
        css=(ASSETS / "groundspeed.css").read_text(encoding="utf-8"),
        plotly=_script((ASSETS / PLOTLY).read_text(encoding="utf-8")),
        scripts=_script("\n".join((ASSETS / name).read_text(encoding="utf-8") for name in SCRIPTS)),
        templates=templates,
        made=f"Written {moment(datetime.now(UTC))} from {escaping.escape(str(frames.snapshot.results))}: "
        f"{frames.snapshot.rows:,} measurements. No request leaves this file.",
        machines=escaping.escape(json.dumps(_machines(frames))),
    )


def _machines(frames: Frames) -> list[dict[str, str]]:
    named = []
    for machine in machine_names(frames):
        view = resolve(State("", {"machine": machine}), frames)
        named.append({"name": machine, "device": device_label(view.device) if view else ""})
    return named


def _key(state: State, first: str) -> tuple[str, ...]:
    """What tells the file's views apart: a link to a variant of a view leads to the view."""
    if state.page in ONCE:
        return (state.page,)
    metric = state.get("metric") if state.page == "" and state.get("metric") in OVERVIEW_METRICS else ""
    operator = state.get("operator") if state.page in PER_OPERATOR else ""
    return (state.page, state.get("machine", first), operator, metric)


def _content(frames: Frames, state: State, repository: Path, rewrite: Any) -> str:
    page = PAGES[state.page]
    view: View | None = resolve(state, frames)
    if view is not None:
        prepare(view)
    drawn = page.draw(state, view, frames, repository)
    return f'<div class="page {page.name}">{to_html(drawn, rewrite)}</div>'


def _script(source: str) -> str:
    """Source that may stand inside a script element."""
    return source.replace("</script", "<\\/script").replace("<!--", "<\\!--")


_FILE = """<!DOCTYPE html>
<html lang="en" data-offline>
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>groundspeed</title>
<link rel="icon" href="data:,">
<style>{css}</style>
</head>
<body data-machines="{machines}">
<a class="skip" href="#main">Skip to the content</a>
<header id="header"></header>
<div class="filters" id="offline-bar"></div>
<main id="main" tabindex="-1"></main>
<footer id="footer">{made}</footer>
<div id="say" role="status" aria-live="polite"></div>
{templates}
<script>{plotly}</script>
<script>{scripts}</script>
</body>
</html>
"""
