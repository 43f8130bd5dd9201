"""Print published figures beside ours: the claims ledger, answered from stored records.

groundspeed claims                  every claim, on the GPU measured last
groundspeed claims liger memory     those whose source, claim or operator say so
groundspeed claims --machine NAME   from the records of another machine
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from groundspeed.errors import UserError
from groundspeed.locations.mirror import mirrored
from groundspeed.locations.place import READ_HELP, place
from groundspeed.project import find_project
from groundspeed.report.units import significant

if TYPE_CHECKING:
    from groundspeed.analysis.claims import Answer, Claim, Verdict

LEDGER = "claims.toml"
_WIDTH = 80


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", metavar="WORD", help="narrow to claims that hold all of these")
    parser.add_argument("--machine", metavar="NAME", help="answer from this machine's records")
    parser.add_argument("--results", type=place, metavar="PLACE", help=READ_HELP)


def run(arguments: argparse.Namespace) -> int:
    from groundspeed.analysis.claims import LedgerError, Shelf, answers, read_claims
    from groundspeed.commands.table import choose_machine
    from groundspeed.report.stored import newest_first

    project = find_project(arguments.project)
    results = mirrored(arguments.results or project.results, project.root).resolve()
    ledger = project.root / "impls" / LEDGER
    try:
        claims = [claim for claim in read_claims(ledger) if _holds(claim, arguments.words)]
    except LedgerError as error:
        raise UserError(str(error)) from error
    if not claims:
        raise UserError(
            f"{ledger}: no claim holds {' and '.join(map(repr, arguments.words))}; type: groundspeed claims"
        )
    machine = choose_machine(arguments.machine or _gpu_machine(results), results)
    shelf = Shelf(newest_first(results, machine))
    found = answers(claims, shelf)
    print("\n\n".join("\n".join(_lines(answer)) for answer in found))
    print("\n" + textwrap.fill(f"{_summary(found)}, on {machine}", _WIDTH))
    sys.stdout.flush()
    for problem in shelf.problems:
        print(f"groundspeed: {problem}", file=sys.stderr)
    return 2 if shelf.problems else 0


def _holds(claim: Claim, words: Sequence[str]) -> bool:
    text = f"{claim.source} {claim.claim} {claim.quantity} {claim.operator}".casefold()
    return all(word.casefold() in text for word in words)


def _summary(found: Sequence[Answer]) -> str:
    """``81 claims, 70 answered: 20 exceeded, 30 reproduced, 20 not reproduced``"""
    counts = Counter(answer.verdict for answer in found)
    answered = len(found) - counts["not measured"]
    told: tuple[Verdict, ...] = ("exceeded", "reproduced", "not reproduced")
    summary = f"{len(found)} claims, {answered} with a figure of ours: " + ", ".join(f"{counts[v]} {v}" for v in told)
    return f"{summary}, {counts['measured']} without a published one" if counts["measured"] else summary


def _gpu_machine(results: Path) -> str | None:
    """The GPU measured last: claims are about GPUs, and a run on this machine's CPU must not hide their answers."""
    from groundspeed.report.stored import machines, runs

    gpus = [name for name in machines(results) if not name.startswith("cpu-")]
    return max(gpus, key=lambda name: runs(results, name)[-1], default=None)


def _lines(answer: Answer) -> list[str]:
    claim = answer.claim
    lines = textwrap.wrap(f"{claim.source}: {claim.claim}", _WIDTH)
    lines += _wrapped("published", _published(answer))
    if claim.reason:
        return [*lines, *_wrapped("ours", f"none: {claim.reason}"), *_address(claim)]
    lines += _wrapped("of", claim.subject + (f" over {claim.taken_over}" if claim.taken_over else ""))
    lines += _wrapped("ours", f"{_figure(answer)}: {answer.verdict}" if answer.cases else answer.verdict)
    if len(answer.cases) > 1:
        lines += [f"             {answer.quantity.show(value):>12}  {label}" for label, value in answer.cases]
    return [*lines, *_wrapped("again", answer.command), *_address(claim)]


def _published(answer: Answer) -> str:
    claim = answer.claim
    if claim.published is None:
        return answer.published
    where = f"on {claim.gpu}" if claim.gpu else "on a GPU that is not named"
    return " ".join(filter(None, (answer.published, where, f"for {claim.shape}" if claim.shape else "")))


def _figure(answer: Answer) -> str:
    """Ours: how it compares with the published figure where it is no ratio itself, over how much, on which GPU."""
    assert answer.ours is not None
    shown = answer.quantity.show(answer.ours)
    if answer.relative is not None and not answer.claim.is_ratio and answer.quantity.better != "neither":
        shown += f", {significant(answer.relative)} times the published figure"
    if len(answer.cases) > 1:
        shown += f", over {len(answer.cases)} {'operators' if '*' in answer.claim.operator else 'cases'}"
    return f"{shown}, on another GPU, {answer.gpu}" if answer.other_gpu else f"{shown}, on {answer.gpu}"


def _address(claim: Claim) -> list[str]:
    return [f"  {'at':<11}{claim.url}"] if claim.url else []


def _wrapped(title: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=f"  {title:<11}",
        subsequent_indent=" " * 13,
        break_on_hyphens=False,
        break_long_words=False,
    )
