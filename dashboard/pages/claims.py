"""Published figures beside ours: the ledger ``impls/claims.toml``, answered from the machine's newest records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
from dash import html

from dashboard.components import numbers, table
from dashboard.components.parts import empty, panel
from dashboard.frames import Frames
from dashboard.pages.page import Page
from dashboard.state import State
from dashboard.view import OUR_PROJECT, View, device_label, metric_on
from groundspeed.analysis.claims import Answer, LedgerError, answers, read_claims
from groundspeed.records import Record, RecordError, read_records

LEDGER = Path("impls") / "claims.toml"
MARKS = {"reproduced": "✓", "exceeded": "✓✓", "not reproduced": "✕", "not measured": "–"}


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
    records, problems = _records(view, {claim.operator for claim in claims}) if view is not None else ([], [])
    told = [html.P(str(problem), className="notice", role="alert") for problem in problems]
    return [html.H1("Claims"), *told, _list(view, answers(claims, records))]


def _records(view: View, operators: set[str]) -> tuple[list[Record], list[RecordError]]:
    """The newest records of these operators on the machine, read whole: a claim is answered in pairs of samples."""
    runs = view.frames.snapshot.runs.filter(
        (pl.col("machine") == view.machine)
        & (pl.col("project") == OUR_PROJECT)
        & pl.col("operator").is_in([*operators])
    )
    newest = runs.sort("started").unique("operator", keep="last", maintain_order=True)
    paths = [view.frames.snapshot.results / source for source in newest.get_column("source").to_list()]
    read = view.frames.once(("records", *paths), lambda: list(read_records(paths)))
    return [one for one in read if isinstance(one, Record)], [one for one in read if isinstance(one, RecordError)]


def _list(view: View | None, found: tuple[Answer, ...]) -> html.Section:
    columns = [
        table.text("Claim", "claim"),
        table.text("Published", "published"),
        table.text("For", "gpu"),
        table.number("Ours", "ours", numbers.times, large=True, hint="geometric mean over the cases that both ran"),
        table.text("Over", "cases"),
        table.text("Verdict", "verdict"),
        table.link("Implementation", "implementation", lambda row: row["href"]),
        table.text("Baseline", "baseline"),
        table.text("Source", "source"),
        table.text("Reproduce", "command"),
    ]
    state = view.state if view is not None else State()
    measured = sum(answer.ratio is not None for answer in found)
    where = ""
    if view is not None:
        label = metric_on(view.device, "device_cold").label
        where = f"Ours: {label}, on {view.machine} ({device_label(view.device)}). "
    return panel(
        f"{len(found)} claims, {measured} with a ratio of ours",
        table.table("claims", columns, [_row(state, answer) for answer in found]),
        note=where + "Most claims were made for another GPU; the verdict then says so. Published factors are rounded: "
        "within 5 % of the range counts as reproduced.",
    )


def _row(state: State, answer: Answer) -> dict[str, Any]:
    claim = answer.claim
    low, high = claim.published
    shown = numbers.times(low) if low == high else f"{numbers.significant(low)} to {numbers.times(high)}"
    other = ", other GPU" if answer.other_gpu and answer.ratio is not None else ""
    return {
        "claim": claim.claim,
        "published": shown,
        "gpu": claim.gpu,
        "ours": answer.ratio,
        "cases": f"{len(answer.cases)} {'case' if len(answer.cases) == 1 else 'cases'}" if answer.cases else "",
        "verdict": f"{MARKS[answer.verdict]} {answer.verdict}{other}",
        "implementation": f"{claim.operator}/{claim.implementation}" + (f" {claim.dtype}" if claim.dtype else ""),
        "baseline": claim.baseline,
        "source": claim.source,
        "command": answer.command,
        "href": state.to("operator", operator=claim.operator, show=f"{claim.baseline}~{claim.implementation}"),
    }


PAGE = Page("claims", "Claims", draw, ("machine",), needs_results=False)
