"""Print what fleets' time went to: GPU-seconds by pull request, operator and machine.

Read from the ledgers that `groundspeed run --fleet` and `gate --fleet` add to under results/<machine>/fleet/.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from groundspeed.errors import UserError
from groundspeed.project import find_project, shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pull-request", metavar="N", help="of this one alone")
    parser.add_argument("--results", type=Path, metavar="DIR", help="where ledgers lie (default: results/)")


def run(arguments: argparse.Namespace) -> int:
    from groundspeed.fleet.account import costs
    from groundspeed.fleet.ledger import read_ledgers
    from groundspeed.report.style import Style

    results: Path = arguments.results or find_project(arguments.project).results
    lines = read_ledgers(results)
    if arguments.pull_request:
        lines = [line for line in lines if line.pull_request == arguments.pull_request]
    if not lines:
        whom = f" for pull request {arguments.pull_request}" if arguments.pull_request else ""
        raise UserError(
            f"no fleet has measured anything{whom} under {shown(results)}; type: groundspeed run --fleet auto"
        )
    print("\n".join(costs(lines, Style.of())))
    return 0
