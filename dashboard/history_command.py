"""``groundspeed history``: where stored results changed their level, between which commits, and how surely."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dashboard.columns import INDENT, aligned, wrapped
from dashboard.where import checkout, known, results_folder, tell_problems
from groundspeed.errors import UserError
from groundspeed.locations.place import READ_HELP, place
from groundspeed.revisions import since as commits_since

if TYPE_CHECKING:
    from dashboard.frames import Frames
    from dashboard.regressions import Group
    from dashboard.store import Metric

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
    parser.add_argument("--metric", help="of this metric (default: device_cold, else the first with values)")
    parser.add_argument("--worse", action="store_true", help="leave improvements out")
    parser.add_argument("--results", type=place, metavar="PLACE", help=READ_HELP)
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")


def run(arguments: argparse.Namespace) -> int:
    """Print the changes. Raises UserError for names that neither the results nor git know."""
    from dashboard.frames import Frames
    from dashboard.regressions import find_changes, grouped, known_environments
    from dashboard.store import open_store
    from dashboard.view import device_label, machine_details, machine_names, metric_on

    results = results_folder(arguments)
    frames = Frames(open_store(results).snapshot)
    tell_problems(frames.snapshot)
    machine = known("machine", arguments.machine, machine_names(frames))
    details = machine_details(frames, machine)
    project = _project(frames, machine)
    metric = metric_on(details, _metric(frames, machine, project, arguments.metric).name)
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
    head = f"{metric.label} on {machine} ({device_label(details)}), {commits} commit{'s' * (commits != 1)}"
    sys.stdout.write(_WRITERS[arguments.format](head, machine, metric.name, groups))
    return 0


def _project(frames: Frames, machine: str) -> str:
    import polars as pl

    runs = frames.snapshot.runs.filter(pl.col("machine") == machine)
    projects = runs.get_column("project").cast(pl.String).unique().to_list()
    return "groundspeed" if "groundspeed" in projects else sorted(projects)[0]


def _metric(frames: Frames, machine: str, project: str, asked: str | None) -> Metric:
    """The metric asked for, else the usual one, else the first that has values, which is told on standard error.

    Raises UserError for a metric that is none, and for one without values.
    """
    import polars as pl

    from dashboard.store import METRICS
    from dashboard.view import DEFAULT_METRIC

    name = known("metric", asked or DEFAULT_METRIC, tuple(METRICS))
    counts = frames.of(machine, project).select(pl.col(tuple(METRICS)).count()).collect().row(0, named=True)
    if counts[name]:
        return METRICS[name]
    having = [other for other, count in counts.items() if count]
    if asked or not having:
        raise UserError(f"no value of {name} on {machine}; metrics with values: {', '.join(having) or 'none'}")
    others = f"; --metric takes {', '.join(having[1:])} too" if having[1:] else ""
    print(f"groundspeed: no value of {name} on {machine}: {having[0]} is shown{others}", file=sys.stderr)
    return METRICS[having[0]]


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
        return "\n".join([*wrapped(head), "no changes of level", ""])
    cells = _cells(groups)
    which, *names = aligned([row[:4] for row in cells], (0, 1))
    lines = [*wrapped(head), which]
    for name, (*_, before, after, between, kind) in zip(names, cells[1:], strict=True):
        lines += [name, *wrapped(f"{before} → {after}, between {between}: {kind}", INDENT)]
    return "\n".join(lines) + "\n"


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
