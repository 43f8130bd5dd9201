"""Published figures beside ours.

``impls/claims.toml`` is a list of ``[[claim]]`` tables of any fields. A claim that names ``operator`` and
``implementation`` (and perhaps ``baseline`` and ``dtype``) gets the ratio that was measured here beside it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import polars as pl
from dash import html

from dashboard.components import numbers, table
from dashboard.components.palette import BASELINE
from dashboard.components.parts import empty, panel
from dashboard.frames import Frames
from dashboard.pages.page import Page
from dashboard.state import State
from dashboard.summary import speedups_by
from dashboard.view import View, device_label

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
    return [html.H1("Claims"), _list(view, claims)]


def _list(view: View | None, claims: list[dict[str, Any]]) -> html.Section:
    names = list(dict.fromkeys(name for entry in claims for name in entry))
    measured = [_ours(view, entry) if view is not None and view.ours else None for entry in claims]
    columns = [
        *(table.text(name.replace("_", " "), name) for name in names),
        table.number("Measured here", "here", numbers.times, hint="geometric mean of the speedup over its baseline"),
        table.text("Over", "cases"),
    ]
    rows = [
        {
            **{name: _words(entry.get(name, "")) for name in names},
            "here": ours["geomean"] if ours else None,
            "cases": f"{ours['k']} of {ours['n']} cases" if ours else "",
        }
        for entry, ours in zip(claims, measured, strict=True)
    ]
    where = (
        f"Measured on {view.machine} ({device_label(view.device)})." if view is not None else "Nothing was measured."
    )
    found = sum(ours is not None for ours in measured)
    return panel(f"{len(rows)} claims, {found} with a ratio of ours", table.table("claims", columns, rows), note=where)


def _ours(view: View, claim: dict[str, Any]) -> dict[str, Any] | None:
    """Our mean speedup for what the claim is about; None where the claim names nothing of ours or nothing was run."""
    operator, implementation = claim.get("operator"), claim.get("implementation")
    if not isinstance(operator, str) or not isinstance(implementation, str):
        return None
    baseline = str(claim.get("baseline") or BASELINE)
    rows = view.frames.speedups(view.machine, view.project, view.metric.name, baseline)
    rows = rows.filter(pl.col("operator") == operator)
    if isinstance(claim.get("dtype"), str):
        rows = rows.filter(pl.col("dtype") == claim["dtype"])
    found = speedups_by(rows, ("operator", "implementation")).filter(pl.col("implementation") == implementation)
    known = found.filter(pl.col("geomean").is_not_null()).to_dicts()
    return known[0] if known else None


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={inner}" for key, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


PAGE = Page("claims", "Claims", draw, ("machine", "metric"), needs_results=False)
