"""The fleet of ``groundspeed gate --fleet``: which machine of it judges, and how it is reached."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from groundspeed import git
from groundspeed.fleet.connect import Connection, connected
from groundspeed.fleet.gating import GateFleet
from groundspeed.fleet.ledger import Ledger
from groundspeed.fleet.options import pull_request
from groundspeed.fleet.running import passed_on
from groundspeed.fleet.view import view
from groundspeed.gate.session import Where
from groundspeed.project import find_project
from groundspeed.run_ids import new_run_id


@contextmanager
def on_fleet(args: argparse.Namespace) -> Iterator[tuple[Where, Connection]]:
    """Connected to the fleet until the end. Raises UserError for a fleet that is not there or cannot judge."""
    project = find_project(args.project)
    with connected(args.fleet) as connection:
        from groundspeed.fleet.ray_nodes import cluster_device, machines

        device = args.device or cluster_device()
        without = frozenset(args.fleet_without)
        there = machines(device, without)
        machine = there.chosen(args.fleet_machine)
        without |= there.others(machine)
        commit = git.head(project.root).hash
        name = f"gate-{new_run_id(commit)}"
        print(f"groundspeed: {name} on {machine} of {connection.where}", file=sys.stderr)
        ledger = Ledger(project.results, name, "gate", commit, pull_request(args.pull_request))
        fleet = GateFleet(machine, device, without, 0.0, ledger, view(sys.stderr), passed_on())
        yield Where(device, machine, fleet), connection
