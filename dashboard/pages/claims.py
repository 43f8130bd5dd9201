"""Published figures beside ours."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from dash import html

from dashboard.components import table
from dashboard.components.parts import empty, panel
from dashboard.frames import Frames
from dashboard.pages.page import Page
from dashboard.state import State
from dashboard.view import View

LEDGER = Path("impls") / "claims.toml"


def draw(state: State, view: View | None, frames: Frames, repository: Path) -> list[Any]:
    path = repository / LEDGER
    if not path.is_file():
        return [
            html.H1("Claims"),
            empty(
                "No claims ledger",
                f"{LEDGER} does not exist in {repository}.",
                "It lists published figures; each is shown beside what was measured here.",
            ),
        ]
    try:
        ledger = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return [html.H1("Claims"), empty("The claims ledger cannot be read", f"{LEDGER}: {error}")]
    claims = [entry for entry in ledger.get("claim", []) if isinstance(entry, dict)]
    names = list(dict.fromkeys(name for entry in claims for name in entry))
    columns = [table.text(name, name) for name in names]
    rows = [{name: _words(entry.get(name, "")) for name in names} for entry in claims]
    return [html.H1("Claims"), panel(f"{len(rows)} claims", table.table("claims", columns, rows))]


def _words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


PAGE = Page("claims", "Claims", draw, (), needs_results=False)
