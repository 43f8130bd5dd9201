"""Published figures beside ours: the ledger ``impls/claims.toml``, answered from the machine's newest records."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import polars as pl
from dash import html

from dashboard.components import numbers, table
from dashboard.components.parts import empty, panel
from dashboard.frames import Frames
from dashboard.pages.page import Page
from dashboard.state import State
from dashboard.view import OUR_PROJECT, View, device_label
from groundspeed.analysis.claims import Answer, Claim, LedgerError, Shelf, answers, read_claims
from groundspeed.records import Record

LEDGER = Path("impls") / "claims.toml"
MARKS = {"reproduced": "✓", "exceeded": "✓✓", "not reproduced": "✕", "measured": "•", "not measured": "–"}


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
        claims = read_claims(path)
    except LedgerError as error:
        return [html.H1("Claims"), empty("The claims ledger cannot be read", str(error))]
    shelf = _shelf(view, claims) if view is not None else Shelf({})
    found = answers(claims, shelf)
    told = [html.P(str(problem), className="notice", role="alert") for problem in shelf.problems]
    return [html.H1("Claims"), *told, _list(view, found)]


def _shelf(view: View, claims: Sequence[Claim]) -> Shelf:
    """The machine's records of the claims' operators: read whole, since a claim is answered in pairs of samples."""
    runs = view.frames.snapshot.runs.filter(
        (pl.col("machine") == view.machine) & (pl.col("project") == OUR_PROJECT)
    ).sort("started", descending=True)
    results = view.frames.snapshot.results
    patterns = {operator for claim in claims if claim.operator for operator in claim.operators}
    entries: dict[str, list[Path | Record]] = {}
    for operator, source in runs.select("operator", "source").iter_rows():
        if any(fnmatchcase(operator, pattern) for pattern in patterns):
            entries.setdefault(operator, []).append(results / source)
    paths = tuple(path for found in entries.values() for path in found)
    return view.frames.once(("claims", *paths), lambda: Shelf(entries))


def _list(view: View | None, found: tuple[Answer, ...]) -> html.Section:
    columns = [
        table.text("Claim", "claim"),
        table.text("Published", "published"),
        table.text("For", "gpu"),
        table.text("Ours", "ours", hint="geometric mean over the cases that it is about"),
        table.number("Ours / published", "relative", numbers.times, large=True, hint="1 inside the published range"),
        table.text("Verdict", "verdict"),
        table.link("Of", "subject", lambda row: row["href"], hint="what of ours, and what a ratio is taken over"),
        table.text("Over, or why not", "cases"),
        table.link("Source", "source", lambda row: row["url"]),
        table.text("Reproduce", "command"),
    ]
    state = view.state if view is not None else State()
    measured = sum(answer.ours is not None for answer in found)
    where = f"Ours: on {view.machine} ({device_label(view.device)}). " if view is not None else ""
    return panel(
        f"{len(found)} claims, {measured} with a figure of ours",
        table.table("claims", columns, [_row(state, answer) for answer in found]),
        note=where + "Most claims were made for another GPU; the verdict then says so. Published figures are rounded: "
        "within 5 % of the range counts as reproduced.",
    )


def _row(state: State, answer: Answer) -> dict[str, Any]:
    claim = answer.claim
    other = ", other GPU" if answer.other_gpu and answer.ours is not None else ""
    counted = "operator" if "*" in claim.operator else "case"
    size = len(answer.cases)
    return {
        "claim": claim.claim,
        "published": answer.published,
        "gpu": " ".join(filter(None, (claim.gpu or "not named", claim.shape))),
        "ours": "" if answer.ours is None else answer.quantity.show(answer.ours),
        "relative": answer.relative,
        "verdict": f"{MARKS[answer.verdict]} {answer.verdict}{other}",
        "subject": _subject(claim),
        "cases": f"{size} {counted if size == 1 else counted + 's'}" if size else claim.reason,
        "source": claim.source,
        "url": claim.url,
        "command": answer.command,
        "href": _href(state, answer),
    }


def _subject(claim: Claim) -> str:
    if not claim.operator:
        return ""
    over = f"over {claim.taken_over}" if claim.taken_over else ""
    return f"{claim.subject} {over}, {claim.quantity}".replace(" ,", ",").replace(",", ", ").replace(",  ", ", ")


def _href(state: State, answer: Answer) -> str:
    """The operator's page; it can show two implementations that are named."""
    claim = answer.claim
    if not claim.operator or "*" in claim.operator:
        return ""
    shown = {claim.over, claim.implementation} if claim.is_ratio else {claim.implementation}
    named = [name for name in sorted(shown) if not set("*,") & set(name)]
    return state.to("operator", operator=claim.operator, **({"show": "~".join(named)} if named else {}))


PAGE = Page("claims", "Claims", draw, ("machine",), needs_results=False)
