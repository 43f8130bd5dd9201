"""Print the speedup table of stored records.

groundspeed table                      the newest run of this machine
groundspeed table softmax              one operator of it
groundspeed table --quantity energy    joules a call, and what a watt brings
groundspeed table --quantity first_call   compiling, caches empty and full
groundspeed table --runs               which runs there are
groundspeed table --readme [--check]   write README's table, or check it
groundspeed table --headers [--check]  write what is reached into the headers
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from groundspeed.commands.headers import write_headers
from groundspeed.commands.standing import nothing_stands, standing_here
from groundspeed.errors import UserError
from groundspeed.locations.mirror import mirrored
from groundspeed.locations.place import READ_HELP, place
from groundspeed.project import Project, find_project, near, shown
from groundspeed.records import QUANTITIES
from groundspeed.whole_files import replace_output

if TYPE_CHECKING:
    from groundspeed.records import Record

ENERGY, FIRST_CALL = "energy", "first_call"
README_MACHINE = "nvidia-h200"
README_TIERS = ("core", "full")
README, SPEED_PAGE = "README.md", "docs/speed.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("operators", nargs="*", metavar="OPERATOR", help="narrow to these")
    parser.add_argument("--run", metavar="ID", help="this run (default: the newest)")
    parser.add_argument("--machine", metavar="NAME", help="of this machine (default: this one, or the only one)")
    quantities = (*QUANTITIES, ENERGY, FIRST_CALL)
    parser.add_argument(
        "--quantity",
        choices=quantities,
        default="device_cold",
        metavar="NAME",
        help=f"what to compare: {', '.join(quantities)}",
    )
    parser.add_argument("--results", type=place, metavar="PLACE", help=READ_HELP)
    parser.add_argument("--runs", action="store_true", help="list the stored runs of the machine")
    parser.add_argument("--readme", action="store_true", help=f"write its table from results/{README_MACHINE}")
    parser.add_argument("--headers", action="store_true", help="write what implementations reach into their headers")
    parser.add_argument("--check", action="store_true", help="with these: write nothing, exit 1 when they are stale")


def run(arguments: argparse.Namespace) -> int:
    project = find_project(arguments.project)
    results = mirrored(arguments.results or project.results, project.root).resolve()
    if arguments.check and not (arguments.readme or arguments.headers):
        raise UserError("--check goes with --readme or --headers; type: groundspeed table --readme --check")
    if arguments.readme and arguments.headers:
        raise UserError("--readme and --headers are written one at a time; type: groundspeed table --readme")
    if arguments.readme:
        return _readme(project, results, check=arguments.check)
    if arguments.headers:
        return write_headers(project, results, README_MACHINE, README_TIERS, check=arguments.check)
    machine = choose_machine(arguments.machine, results)
    if arguments.runs:
        return _list_runs(results, machine)
    return _show(arguments, results, machine)


def _show(arguments: argparse.Namespace, results: Path, machine: str) -> int:
    from groundspeed.report.energy import energy_table
    from groundspeed.report.first_call import first_call_table
    from groundspeed.report.remarks import remarks
    from groundspeed.report.stored import run_records, runs
    from groundspeed.report.style import Style
    from groundspeed.report.table import operator_table

    known = runs(results, machine)
    run_id = arguments.run or known[-1]
    if run_id not in known:
        raise UserError(f"no run {run_id!r} of {machine}{near(run_id, known)}; type: groundspeed table --runs")
    records, problems = run_records(results, machine, run_id)
    try:
        chosen = _narrow(records, arguments.operators, run_id)
    except UserError as error:
        raise UserError("; ".join([str(error), *problems])) from error
    style = Style.of()
    lines = [_about(chosen[0])] if chosen else []
    special = {ENERGY: energy_table, FIRST_CALL: first_call_table}
    for record in chosen:
        of_its_own = special.get(arguments.quantity)
        lines += of_its_own(record, style) if of_its_own else operator_table(record, style, arguments.quantity)
    print("\n".join([*lines, *remarks(chosen, style)]).rstrip())
    sys.stdout.flush()
    for problem in problems:
        print(f"groundspeed: {problem}", file=sys.stderr)
    return 2 if problems else 0


def _narrow(records: list[Record], operators: list[str], run_id: str) -> list[Record]:
    known = {record.header.operator: record for record in records}
    for operator in operators:
        if operator not in known:
            older = "for another run type: groundspeed table --runs, then --run ID"
            raise UserError(f"run {run_id} holds no {operator!r}{near(operator, known)}; {older}")
    return [known[operator] for operator in operators] if operators else records


def _about(record: Record) -> str:
    header = record.header
    commit = f"commit {header.commit[:8]}{' with changes' if header.dirty else ''}" if header.commit else "no commit"
    return f"run {header.run_id}, tier {header.tier}, {commit}\n"


def choose_machine(named: str | None, results: Path) -> str:
    """The machine whose records are meant: the one named, this one, or the only one there is."""
    from groundspeed.machine import machine_name
    from groundspeed.report.stored import machines

    known = machines(results)
    if not known:
        raise UserError(f"no records under {results}; type: groundspeed run")
    here = machine_name()
    machine = named or (here if here in known or len(known) > 1 else known[0])
    if machine not in known:
        raise UserError(f"no records of machine {machine!r}{near(machine, known)}; pass --machine NAME")
    return machine


def _list_runs(results: Path, machine: str) -> int:
    from groundspeed.report.stored import run_records, runs

    for run_id in runs(results, machine):
        records, _ = run_records(results, machine, run_id)
        names = ", ".join(record.header.operator for record in records)
        tier = records[0].header.tier if records else "?"
        print(f"{run_id}  {tier:<5}  {names}")
    return 0


def _readme(project: Project, results: Path, check: bool) -> int:
    """README's table, a row an operator, and that of the page of all cases, where there is one."""
    from groundspeed.report.readme import replace_table, speed_table

    operators = standing_here(project, results, README_MACHINE, README_TIERS)
    stale = {}
    for name, every in ((README, False), (SPEED_PAGE, True)):
        path = project.root / name
        if name == README or path.is_file():
            before = path.read_text(encoding="utf-8")
            after = replace_table(before, speed_table(operators, README_MACHINE, every), name)
            if after != before:
                stale[path] = after
    if not stale:
        print("README.md: the speed table is up to date")
        return 0
    folder = shown(results / README_MACHINE)
    names = " and ".join(str(path.relative_to(project.root)) for path in stale)
    if not operators:
        raise UserError(f"{names} is left as it is: {nothing_stands(results / README_MACHINE, README_TIERS)}")
    if check:
        print(f"groundspeed: {names}: the speed table is stale; type: groundspeed table --readme", file=sys.stderr)
        return 1
    for path, text in stale.items():
        replace_output(path, text.encode())
    print(f"{names}: speed table written from {folder}")
    return 0
