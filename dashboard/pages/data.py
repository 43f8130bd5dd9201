"""What there is and what there is not: machines, runs, environments, missing cells, files that could not be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
from dash import html

from dashboard.components import table
from dashboard.components.controls import choices
from dashboard.components.parts import definitions, empty, moment, panel, short
from dashboard.frames import Frames
from dashboard.pages.page import Page
from dashboard.state import State
from dashboard.view import View, device_label

NEWEST = 1_000  # files that are listed
STATUSES = (("missing", "failed and skipped"), ("failed", "failed"), ("skipped", "skipped"), ("unstable", "≈ unstable"))


def draw(state: State, view: View | None, frames: Frames, repository: Path) -> list[Any]:
    problems = frames.snapshot.problems
    parts: list[Any] = [html.H1("Data"), _problems(problems)]
    if view is not None:
        parts += [_machines(frames, view), _missing(view), _environments(view), _runs(view)]
    else:
        parts.append(empty("No results", f"Nothing could be read in {frames.snapshot.results}."))
    return parts


def _problems(problems: pl.DataFrame) -> html.Section:
    if problems.is_empty():
        return panel("Files that could not be read", html.P("None: every file was read."))
    columns = [table.text("File", "file"), table.text("Reason", "reason")]
    return panel(
        f"Files that could not be read: {problems.height}",
        table.table("problems", columns, problems.to_dicts()),
        note="Everything else is shown. A file is read again as soon as it changes.",
    )


def _machines(frames: Frames, view: View) -> html.Section:
    columns = [
        table.link("Machine", "machine", lambda r: view.state.to("", machine=r["machine"])),
        table.text("Device", "device"),
        table.number("Runs", "runs", str),
        table.number("Measurements", "rows", str),
        table.text("First", "since"),
        table.text("Last", "until"),
    ]
    rows = []
    for row in frames.snapshot.machines.to_dicts():
        details = json.loads(row["details"]) if row["details"] else {}
        rows.append(
            {**row, "device": device_label(details), "since": moment(row["first"]), "until": moment(row["last"])}
        )
    return panel("Machines", table.table("machines", columns, rows))


def _missing(view: View) -> html.Section:
    kind = view.state.get("status", "missing")
    latest = view.latest()
    wanted = {
        "missing": pl.col("status") != "ok",
        "failed": pl.col("status") == "failed",
        "skipped": pl.col("status") == "skipped",
        "unstable": pl.col("unstable").cast(pl.String) != "",
    }
    rows = latest.filter(wanted.get(kind, wanted["missing"]))
    columns = [
        table.link("Operator", "operator", lambda r: view.state.to("operator", operator=r["operator"])),
        table.text("Implementation", "implementation"),
        table.text("Dtype", "dtype"),
        table.text("Shape", "shape"),
        table.text("Status", "status"),
        table.text("Failure", "failure"),
        table.text("Reason", "why"),
        table.text("Commit", "short"),
    ]
    shown = [{**row, "why": row["reason"] or row["unstable"], "short": short(row["commit"])} for row in rows.to_dicts()]
    return panel(
        f"Missing: {rows.height} of {latest.height} series of {view.machine}",
        choices(view.state, "status", list(STATUSES), kind, "missing"),
        table.table("missing", columns, shown),
        note="The newest state of every series, with the reason.",
    )


def _environments(view: View) -> html.Section:
    """One column an environment that was ever used, newest first; only fields that differ are told apart."""
    runs = view.frames.snapshot.runs.filter((pl.col("machine") == view.machine) & (pl.col("project") == view.project))
    newest = (
        runs.sort("started", descending=True, nulls_last=True)
        .unique("details", keep="first", maintain_order=True)
        .head(6)
    )
    rows = [(row, json.loads(row["details"]) if row["details"] else {}) for row in newest.to_dicts()]
    rows = [(row, details) for row, details in rows if isinstance(details, dict)]
    if not rows:
        return panel("Environments", html.P("The files say nothing of their environment."))
    names = list(dict.fromkeys(name for _, details in rows for name in details))
    current = rows[0][1]
    changed = [name for name in names if len({json.dumps(d.get(name), sort_keys=True) for _, d in rows}) > 1]
    columns = [table.text("Until", "until"), *(table.text(name, name) for name in changed)]
    history = [
        {"until": f"{moment(row['started'])} · {short(row['commit'])}", **{n: str(d.get(n, "")) for n in changed}}
        for row, d in rows
    ]
    return panel(
        "Environments",
        definitions([(name, str(current.get(name, ""))) for name in names]),
        html.H3("Changes") if changed else None,
        table.table("environments", columns, history) if changed else html.P("It has not changed."),
        note="Of the newest run. A changed environment does not split a series; the history marks it.",
    )


def _runs(view: View) -> html.Section:
    runs = view.frames.snapshot.runs.filter(
        (pl.col("machine") == view.machine) & (pl.col("project") == view.project)
    ).sort("started", descending=True, nulls_last=True)
    shown = runs.head(NEWEST)
    columns = [
        table.text("Run", "run_id"),
        table.text("Operator", "operator"),
        table.text("Commit", "short"),
        table.text("Committed", "when"),
        table.text("Tree", "tree"),
        table.text("Tier", "tier"),
        table.number("Rows", "rows", str),
        table.number("Sweep", "seconds", lambda s: f"{s:.0f} s"),
        table.text("File", "source"),
    ]
    rows = [
        {
            **row,
            "short": short(row["commit"]),
            "when": moment(row["commit_time"]),
            "tree": "dirty" if row["dirty"] else "clean",
        }
        for row in shown.to_dicts()
    ]
    note = f"The newest {shown.height:,} of {runs.height:,} files." if shown.height < runs.height else ""
    return panel(f"Runs of {view.machine}", table.table("runs", columns, rows), note=note)


PAGE = Page("data", "Data", draw, ("machine", "project", "dtype"), needs_results=False)
