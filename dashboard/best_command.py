"""``groundspeed best``: which implementation wins at which size, and a dispatch table to choose it by."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from dashboard.columns import INDENT, WIDTH, aligned, total, widths, wrapped
from dashboard.where import known, results_folder, tell_problems
from groundspeed.errors import UserError
from groundspeed.locations.place import READ_HELP, place
from groundspeed.whole_files import replace_output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``groundspeed best``."""
    parser.description = "Print which implementation of an operator is fastest in which case, on stored results."
    parser.add_argument("operator", metavar="OPERATOR", help="which operator")
    parser.add_argument("--machine", metavar="NAME", help="on this machine (default: the GPU measured last)")
    parser.add_argument("--metric", default="device_cold", help="by this metric (default: device_cold)")
    parser.add_argument("--results", type=place, metavar="PLACE", help=READ_HELP)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write a dispatch table; - is standard output")


def run(arguments: argparse.Namespace) -> int:
    """Print the table. Raises UserError for names that the results do not have."""
    from dashboard.frames import Frames
    from dashboard.store import METRICS, open_store, queries
    from dashboard.view import device_label, machine_details, machine_names, metric_on

    frames = Frames(open_store(results_folder(arguments)).snapshot)
    tell_problems(frames.snapshot)
    machine = known("machine", arguments.machine, machine_names(frames))
    details = machine_details(frames, machine)
    metric = metric_on(details, known("metric", arguments.metric, tuple(METRICS)))
    operator = known("operator", arguments.operator, frames.choices(machine, "groundspeed", "operator"))
    found = queries.best_by_size(frames.latest(machine, "groundspeed"), operator, metric.name)
    rows = found.sort("dtype", "bytes").to_dicts()
    if not rows:
        raise UserError(f"{operator}: no case on {machine} has a value of {metric.name}")
    device = device_label(details)
    if arguments.json is None or str(arguments.json) != "-":
        print(
            "\n".join([*wrapped(f"{operator} on {machine} ({device}), by {metric.label}"), *_lines(rows, metric.unit)])
        )
    if arguments.json is not None:
        _write(arguments.json, dispatch_table(operator, machine, device, metric.name, metric.unit, rows))
    return 0


def dispatch_table(
    operator: str, machine: str, device: str, metric: str, unit: str, rows: list[dict[str, Any]]
) -> dict[str, Any]:
    """The winners as plain data: for each dtype its cases by bytes, each with its shape, winner and lead.

    ``tie`` says that the 99 % intervals of the first two touch: either may be chosen.
    """
    by_dtype: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_dtype.setdefault(row["dtype"], []).append(
            {
                "shape": json.loads(row["facets"]),
                "bytes": row["bytes"],
                "implementation": row["implementation"],
                "value": row["value"],
                "second": row["second"],
                "ahead": row["margin"],
                "tie": row["tie"],
            }
        )
    return {
        "version": 1,
        "operator": operator,
        "machine": machine,
        "device": device,
        "metric": metric,
        "unit": unit,
        "dtypes": by_dtype,
    }


def _lines(rows: list[dict[str, Any]], unit: str) -> list[str]:
    from dashboard.components.numbers import percent, quantity

    cells: list[tuple[str, ...]] = [("dtype", "shape", "fastest", "", "next", "ahead by")]
    for row in rows:
        ahead = "tie" if row["tie"] else percent(row["margin"] - 1) if row["margin"] else ""
        value = quantity(row["value"], unit)
        cells.append((row["dtype"], row["shape"], row["implementation"], value, row["second"] or "", ahead))
    lines = aligned(cells) if total(widths(cells)) <= WIDTH else _in_two_lines(cells)
    return [*lines, *(["tie: the 99 % intervals of the two touch"] if any(row["tie"] for row in rows) else [])]


def _in_two_lines(cells: list[tuple[str, ...]]) -> list[str]:
    """A case in a line of its own above what won there: a shape is worth more whole than in line."""
    cases = aligned([row[:2] for row in cells], (1,))
    winners = aligned([(INDENT + row[2], *row[3:]) for row in cells], (0, 2))
    return [line for pair in zip(cases, winners, strict=True) for line in pair]


def _write(path: Path, table: dict[str, Any]) -> None:
    text = json.dumps(table, indent=2) + "\n"
    if str(path) == "-":
        sys.stdout.write(text)
        return
    try:
        replace_output(path, text.encode())
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
