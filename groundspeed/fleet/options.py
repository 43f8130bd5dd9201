"""The options of ``groundspeed run`` and ``gate`` that choose a fleet."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping

from groundspeed.errors import UserError


def add(parser: argparse.ArgumentParser) -> None:
    fleet = parser.add_argument_group("over many machines (docs/fleet.md)")
    fleet.add_argument("--fleet", metavar="auto|ray://…", help="measure on the GPUs of this Ray cluster")
    fleet.add_argument(
        "--fleet-without", action="append", default=[], metavar="HOST", help="leave this host out; may be given again"
    )
    fleet.add_argument("--fleet-machine", metavar="NAME", help="use this kind of machine alone, such as nvidia-h200")
    fleet.add_argument("--pull-request", metavar="N", help="whom the GPU-seconds are for (default: as CI says)")


def check(arguments: argparse.Namespace) -> None:
    """Raises UserError for options that do not go together."""
    if not arguments.fleet:
        for name in ("fleet_without", "fleet_machine"):
            if getattr(arguments, name):
                raise UserError(f"--{name.replace('_', '-')} goes with --fleet; add --fleet auto, or leave it out")
        return
    for name in ("shard", "gpus"):
        if getattr(arguments, name, None):
            raise UserError(f"--fleet shares the work out by itself; leave --{name} out")


def pull_request(typed: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """What was typed, else what GitHub's or GitLab's CI says, else nothing."""
    if typed:
        return typed
    github = re.fullmatch(r"refs/pull/([0-9]+)/(?:merge|head)", environment.get("GITHUB_REF", ""))
    return github[1] if github else environment.get("CI_MERGE_REQUEST_IID", "")
