"""``groundspeed run --fleet``."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from groundspeed import session
from groundspeed.commands import durations, narrowing, run_ending, sweeping
from groundspeed.commands.planning import Planned, planned
from groundspeed.errors import UserError
from groundspeed.fleet.account import account
from groundspeed.fleet.connect import connected
from groundspeed.fleet.options import pull_request
from groundspeed.fleet.running import Fleet, FleetRun, only_driver, run_fleet
from groundspeed.fleet.view import view
from groundspeed.measure.claim import Patience
from groundspeed.measure.first_call_subset import read_subset
from groundspeed.report.style import Style
from groundspeed.session import Run

_UNKNOWN = "unknown"  # stands for the machine until stations are there; nothing is written under it


def run_on_fleet(arguments: argparse.Namespace) -> int:
    if arguments.wait < 0:
        raise UserError(f"--wait {arguments.wait:g}: expected minutes, 0 for none")
    plan = planned(arguments)
    with connected(arguments.fleet) as connection:
        opened = _opened(arguments, plan)
        again = run_ending.again(opened, arguments, plan.chosen)
        opened = replace(opened, go_on=f"to go on, type: {again}")
        sweeping.check_first_calls(opened, plan.operators)
        print(f"groundspeed: run {opened.run_id} on {connection.where}; after a break, type: {again}", file=sys.stderr)
        with only_driver(plan.results / opened.run_id):
            done = _measured(opened, arguments, plan, again)
    return connection.leave(_reported(opened, done, arguments))


def _opened(arguments: argparse.Namespace, plan: Planned) -> Run:
    from groundspeed.fleet.ray_nodes import cluster_device

    begun = [folder.parent.parent.name for folder in plan.results.glob(f"*/records/{arguments.resume}")]
    return session.open_run(
        plan.project.root,
        plan.results,
        plan.whole,
        device=cluster_device(),
        run_id=arguments.resume,
        machine=begun[0] if begun else _UNKNOWN,
        first_call=read_subset(plan.project.root) if plan.chosen.first_call else (),
    )


def _measured(opened: Run, arguments: argparse.Namespace, plan: Planned, again: str) -> FleetRun:
    from groundspeed.fleet.ray_nodes import machines as machines_of

    without = frozenset(arguments.fleet_without)
    if arguments.fleet_machine:
        there = machines_of(opened.device, without)
        without |= there.others(there.chosen(arguments.fleet_machine))
    fleet = Fleet(
        without,
        Patience(60 * arguments.wait),
        pull_request(arguments.pull_request),
    )
    runs = {name: sweeping.narrowed(opened, name, patterns) for name, patterns in plan.operators.items()}
    machines: list[Run] = []

    def begin(run: Run) -> None:
        machines.append(run)
        narrowing.keep(run.record_path("x").parent, plan.chosen)

    try:
        return run_fleet(opened, runs, fleet, durations.expected, begin, view(sys.stderr))
    except (KeyboardInterrupt, UserError) as ended:
        folders = [run.record_path("x").parent for run in machines]
        for folder in folders:
            narrowing.drop(folder)
        if isinstance(ended, KeyboardInterrupt):
            run_ending.say_how_to_resume([folder for folder in folders if folder.is_dir()], again)
        raise


def _reported(opened: Run, done: FleetRun, arguments: argparse.Namespace) -> int:
    problems = [_problem(machine, name, why) for (machine, name), why in sorted(done.problems.items())]
    statuses = [
        run_ending.report(replace(opened, machine=machine), [], arguments.results) for machine in sorted(done.machines)
    ]
    print("\n".join(account(done.lines, done.moves, Style.of())))
    sys.stdout.flush()
    for line in (*done.remarks, *problems):
        print(f"groundspeed: {line}", file=sys.stderr)
    return 2 if problems else max(statuses, default=0)


def _problem(machine: str, operator: str, why: str) -> str:
    named = why if why.startswith(f"{operator}: ") else f"{operator}: {why}"
    return f"{machine}: {named}"
