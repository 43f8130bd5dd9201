"""The end of a run: its table, and what to type to go on with it."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from groundspeed.commands.narrowing import Narrowing
from groundspeed.project import command
from groundspeed.report.ending import time_split, where
from groundspeed.report.energy import energy_table, has_energy
from groundspeed.report.first_call import first_call_table, has_first_calls
from groundspeed.report.remarks import count, measured, remarks
from groundspeed.report.stored import run_records
from groundspeed.report.style import Style
from groundspeed.report.table import operator_table
from groundspeed.session import Run


def report(opened: Run, problems: Sequence[str], typed: Path | None) -> int:
    """Print what a run measured; returns the exit status. ``typed`` is the results folder as it was typed."""
    # Operators that are spread over several GPUs are filed under another machine than those beside them.
    machines = sorted(folder.parent.parent.name for folder in opened.results.glob(f"*/records/{opened.run_id}"))
    found = [run_records(opened.results, machine, opened.run_id) for machine in machines]
    records = [record for some, _ in found for record in some]
    unreadable = [line for _, some in found for line in some]
    style = Style.of()
    lines = [""]
    for record in records:
        lines += operator_table(record, style)
    lines += [line for record in records if has_energy(record) for line in energy_table(record, style)]
    lines += [line for record in records if has_first_calls(record) for line in first_call_table(record, style)]
    lines += remarks(records, style)
    lines += time_split(records, style)
    lines += where(opened.record_path("x").parent, records, command(), typed)
    print("\n".join(lines))
    sys.stdout.flush()
    for problem in [*problems, *unreadable]:
        print(f"groundspeed: {problem}", file=sys.stderr)
    if problems or unreadable:
        return 2
    return 1 if count(measured(records), "failed") else 0


def again(opened: Run, arguments: argparse.Namespace, chosen: Narrowing) -> str:
    """What to type to go on with a run."""
    words = ["run", *chosen.words()]
    for name in ("project", "results", "gpus", "fleet", "fleet_machine", "pull_request"):
        words += [f"--{name.replace('_', '-')}", str(getattr(arguments, name))] if getattr(arguments, name) else []
    words += [word for host in arguments.fleet_without for word in ("--fleet-without", host)]
    words += [f"--wait={arguments.wait:g}"] if arguments.wait else []
    return f"{command()} {shlex.join([*words, '--resume', opened.run_id])}"


def say_how_to_resume(folders: Sequence[Path], again: str) -> None:
    """After a break: what is kept in these folders of a run, and how to go on."""
    done = sorted({path.name.partition(".")[0] for folder in folders for path in folder.glob("*.jsonl.gz")})
    if not done:
        print("\ngroundspeed: no operator was finished, nothing is kept", file=sys.stderr)
        return
    print(f"\ngroundspeed: kept {', '.join(done)}; to go on, type: {again}", file=sys.stderr)
