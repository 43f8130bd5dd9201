"""``groundspeed history``: where stored results changed their level, between which commits, and how surely."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dashboard.where import checkout, known, results_folder
from groundspeed.revisions import since as commits_since

if TYPE_CHECKING:
    from dashboard.frames import Frames
    from dashboard.regressions import Group

FORMATS = ("text", "md", "json")
VERSION = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``groundspeed history``."""
    parser.description = (
        "Print the changes of level in the stored results of a machine, newest first: steps and drifts, the commits "
        "between which each lies, its size, and whether the environment changed with it. Stored results point at "
        "commits that are worth a look; they never gate a merge."
    )
    parser.add_argument("operator", nargs="?", metavar="OPERATOR", help="of this operator (default: all)")
    parser.add_argument("--since", metavar="REV", help="only changes that lie in commits after this revision")
    parser.add_argument("--machine", metavar="NAME", help="on this machine (default: the GPU measured last)")
    parser.add_argument("--metric", default="device_cold", help="of this metric (default: device_cold)")
    parser.add_argument("--worse", action="store_true", help="leave improvements out")
    parser.add_argument("--results", type=Path, metavar="DIR", help="where results are (default: results/)")
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")


def run(arguments: argparse.Namespace) -> int:
    """Print the changes. Raises UserError for names that neither the results nor git know."""
    from dashboard.frames import Frames
    from dashboard.regressions import find_changes, grouped, known_environments
    from dashboard.store import METRICS, open_store
    from dashboard.view import device_label, machine_details, machine_names, metric_on

    results = results_folder(arguments)
    frames = Frames(open_store(results).snapshot)
    machine = known("machine", arguments.machine, machine_names(frames))
    details = machine_details(frames, machine)
    metric = metric_on(details, known("metric", arguments.metric, tuple(METRICS)))
    project = _project(frames, machine)
    if arguments.operator:
        known("operator", arguments.operator, frames.choices(machine, project, "operator"))
    rows = frames.of(machine, project)
    changes = find_changes(rows, metric.name, known_environments(frames))
    groups = grouped([change for change in changes if arguments.operator in (None, change.operator)])
    if arguments.since:
        later = commits_since(checkout(arguments, results), arguments.since)
        groups = [group for group in groups if group.first.commit in later]
    if arguments.worse:
        groups = [group for group in groups if group.worse > 0]
    commits = len(frames.commits(machine, project))
    head = f"{metric.label} on {machine} ({device_label(details)}), {commits} commits"
    sys.stdout.write(_WRITERS[arguments.format](head, machine, metric.name, groups))
    return 0


def _project(frames: Frames, machine: str) -> str:
    import polars as pl

    runs = frames.snapshot.runs.filter(pl.col("machine") == machine)
    projects = runs.get_column("project").cast(pl.String).unique().to_list()
    return "groundspeed" if "groundspeed" in projects else sorted(projects)[0]


def _cells(groups: Sequence[Group]) -> list[tuple[str, ...]]:
    from dashboard.components.numbers import percent, quantity
    from dashboard.components.parts import short

    rows: list[tuple[str, ...]] = [
        ("operator", "implementation", "cases", "change", "before", "after", "lies between", "what it is")
    ]
    for group in groups:
        first = max(group.changes, key=lambda change: abs(change.worse))
        words = [first.kind, "provisional" if group.provisional else "", "recovered" if group.recovered else ""]
        words.append(f"environment: {group.environment}" if group.environment else "")
        rows.append(
            (
                first.operator,
                first.implementation or first.environment,
                str(len(group.changes)),
                f"{percent(abs(group.worse))} {'worse' if group.worse > 0 else 'better'}",
                quantity(first.before, first.unit),
                quantity(first.after, first.unit),
                f"{short(first.last_good)} and {short(first.by)}",
                ", ".join(word for word in words if word),
            )
        )
    return rows


def _text(head: str, machine: str, metric: str, groups: Sequence[Group]) -> str:
    if not groups:
        return f"{head}\nno changes of level\n"
    cells = _cells(groups)
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([head, *lines]) + "\n"


def _markdown(head: str, machine: str, metric: str, groups: Sequence[Group]) -> str:
    if not groups:
        return f"**{_escaped(head)}**\n\nNo changes of level.\n"
    first, *rest = _cells(groups)
    lines = [first, ("---",) * len(first), *rest]
    return (
        "\n".join([f"**{_escaped(head)}**", "", *("| " + " | ".join(map(_escaped, row)) + " |" for row in lines)])
        + "\n"
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")


def _json(head: str, machine: str, metric: str, groups: Sequence[Group]) -> str:
    document: dict[str, Any] = {
        "version": VERSION,
        "machine": machine,
        "metric": metric,
        "changes": [
            {
                "key": group.key,
                "worse": group.worse,
                "provisional": group.provisional,
                "recovered": group.recovered,
                "environment": group.environment,
                "series": [
                    {**asdict(change), "when": change.when.isoformat() if change.when else None}
                    for change in group.changes
                ],
            }
            for group in groups
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


_WRITERS = {"text": _text, "md": _markdown, "json": _json}
