"""Print published figures beside ours: the claims ledger, answered from stored records.

groundspeed claims                 every claim, on the GPU measured last
groundspeed claims --machine NAME  from the records of another machine
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from groundspeed.errors import UserError
from groundspeed.project import find_project

if TYPE_CHECKING:
    from groundspeed.analysis.claims import Answer, Claim

LEDGER = "claims.toml"
_WIDTH = 80


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--machine", metavar="NAME", help="answer from this machine's records")
    parser.add_argument("--results", type=Path, metavar="DIR", help="where records are (default: results/)")


def run(arguments: argparse.Namespace) -> int:
    from groundspeed.analysis.claims import LedgerError, answers, read_claims
    from groundspeed.commands.table import choose_machine
    from groundspeed.operator import TIERS
    from groundspeed.report.stored import latest_records

    project = find_project(arguments.project)
    results = (arguments.results or project.results).resolve()
    try:
        claims = read_claims(project.root / "impls" / LEDGER)
    except LedgerError as error:
        raise UserError(str(error)) from error
    machine = choose_machine(arguments.machine or _gpu_machine(results), results)
    records, problems = latest_records(results, machine, TIERS)
    found = answers(claims, records)
    print("\n\n".join("\n".join(_lines(answer)) for answer in found))
    measured = sum(answer.ratio is not None for answer in found)
    print(f"\n{len(found)} claims, {measured} with a ratio of ours, measured on {machine}")
    sys.stdout.flush()
    for problem in problems:
        print(f"groundspeed: {problem}", file=sys.stderr)
    return 2 if problems else 0


def _gpu_machine(results: Path) -> str | None:
    """The GPU measured last: claims are about GPUs, and a run on this machine's CPU must not hide their answers."""
    from groundspeed.report.stored import machines, runs

    gpus = [name for name in machines(results) if not name.startswith("cpu-")]
    return max(gpus, key=lambda name: runs(results, name)[-1], default=None)


def _lines(answer: Answer) -> list[str]:
    claim = answer.claim
    where = f" (another GPU: ours is {answer.gpu})" if answer.other_gpu else ""
    lines = textwrap.wrap(f"{claim.source}: {claim.claim}", _WIDTH)
    lines.append(f"  published  {_published(claim)} on {claim.gpu}")
    ours = "–" if answer.ratio is None else f"{_times(answer.ratio)} over {len(answer.cases)} cases"
    subject = f"{claim.operator}/{claim.implementation}{' ' + claim.dtype if claim.dtype else ''}"
    lines += textwrap.wrap(
        f"ours       {ours}, {subject}: {answer.verdict}{where}",
        _WIDTH,
        initial_indent="  ",
        subsequent_indent=" " * 13,
    )
    lines += [f"             {_times(value):>6}  {label}" for label, value in answer.cases]
    lines.append(f"  again      {answer.command}")
    return lines


def _published(claim: Claim) -> str:
    low, high = claim.published
    return _times(low) if low == high else f"{_times(low)} to {_times(high)}"


def _times(value: float) -> str:
    return f"{value:.3g}×"
