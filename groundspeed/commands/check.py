"""Check implementations against the float64 reference, on every check case of their operators.

  groundspeed check                      everything
  groundspeed check softmax              one operator
  groundspeed check softmax/triton_row   one implementation, or a pattern
  groundspeed check '*/triton_*'         of every operator
  groundspeed check --keep               keep what comes out, under results/
  groundspeed check --stored             the newest kept ones as Markdown

Without a GPU, Triton kernels run in its interpreter, in a process of their own, and CUDA and CuPy are skipped.
Exit status: 0 all that could be checked is right, 1 something is wrong or nothing could be checked, 2 wrong use.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from groundspeed.errors import UserError
from groundspeed.project import Project, find_project, near, parse_targets, shown
from groundspeed.report.units import counted
from groundspeed.scaffold.marks import Unfinished, unfinished
from groundspeed.selection import Selection
from groundspeed.tree import SpecError, Tree

if TYPE_CHECKING:
    from groundspeed.measure.supervisor import Progress
    from groundspeed.records import Measurement
    from groundspeed.report.progress import Display
    from groundspeed.report.style import Style


_ALL = "check"  # the progress line is of the whole check: operators are judged side by side


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("targets", nargs="*", metavar="OPERATOR[/IMPL]", help="what to check (default: everything)")
    parser.add_argument("--keep", action="store_true", help="keep what comes out beside the records")
    parser.add_argument("--stored", action="store_true", help="check nothing: print what was kept, as Markdown")
    parser.add_argument("--machine", metavar="NAME", help="with --stored: checked on this machine (default: this one)")
    parser.add_argument("--dtype", action="append", default=[], metavar="DTYPE", help="narrow to this; may be repeated")


def run(arguments: argparse.Namespace) -> int:
    from groundspeed import checks, session
    from groundspeed.report.progress import Display, Estimate
    from groundspeed.report.remarks import count, failed, skipped
    from groundspeed.report.style import Style

    project = find_project(arguments.project)
    if arguments.stored:
        return _stored(project, arguments)
    if arguments.machine:
        raise UserError("--machine goes with --stored: what is checked is this machine")
    tree = project.tree()
    targets = parse_targets(arguments.targets, tree)
    chosen = {name: [t.implementation for t in targets if t.operator == name] for name in tree.operators()}
    operators = [name for name in tree.operators() if not targets or chosen[name]]
    dtypes = tuple(dict.fromkeys(part for text in arguments.dtype for part in text.split(",") if part))
    _refuse_dtypes_of_none(tree, operators, dtypes)
    opened = session.open_run(project.root, project.results, Selection(dtypes=dtypes))
    runs = [replace(opened, selection=Selection((name,), _patterns(chosen[name]), dtypes)) for name in operators]
    display = Display(sys.stderr, Style.of(sys.stderr), Estimate({_ALL: 1.0}))
    style = Style.of()
    started = datetime.now(UTC)
    found: dict[str, Sequence[Measurement]] = {}
    problems = []
    display.begin(_ALL, ", ".join(operators))
    for checked in checks.check_operators(runs, partial(_show, display)):
        if checked.problem:
            display.say(f"{checked.operator}: could not be checked")
            problems.append(checked.problem)
            continue
        found[checked.operator] = checked.rows
        display.say(f"{checked.operator}: {_tally(checked.rows)}")
        if arguments.keep and checked.rows:
            checks.keep(opened, checked, started)
        # At once: what is wrong must be known even when a later operator is interrupted.
        wrong = failed({checked.operator: checked.rows}, style)
        print("\n".join(wrong), end="\n" if wrong else "", flush=True)
    display.end(_ALL, "done")
    entries = {name: found[name] for name in operators if name in found}
    verdict = [_verdict(entries, style)] if entries else []
    print("\n".join(["", *skipped(entries, style), *_still_to_write(tree, entries, style), *verdict]))
    sys.stdout.flush()
    for problem in problems:
        print(f"groundspeed: {problem}", file=sys.stderr)
    if problems:
        return 2
    return 0 if count(entries, "ok") and not count(entries, "failed") else 1


def _stored(project: Project, arguments: argparse.Namespace) -> int:
    from groundspeed.commands.standing import still_there
    from groundspeed.report.kept_checks import changed_since, kept_checks, markdown

    if arguments.targets or arguments.dtype or arguments.keep:
        raise UserError(
            "--stored goes with --machine alone: it prints all that was kept; type: groundspeed check --stored"
        )
    machine = arguments.machine or _this_machine()
    tree = project.tree()
    kept, problems = kept_checks(project.results, machine, still_there(tree))
    for problem in problems:
        print(f"groundspeed: {problem}", file=sys.stderr)
    if not kept:
        there = sorted(folder.parent.name for folder in project.results.glob("*/checks"))
        raise UserError(f"no checks of {machine} were kept{near(machine, there)}; type there: groundspeed check --keep")
    print("\n".join(markdown(kept)))
    changed = changed_since(
        kept, lambda operator, name: tree.implementation_digest(tree.implementation(operator, name))
    )
    if changed:
        rows, names = sum(changed.values()), list(changed)
        print(
            f"groundspeed: {rows:,} of these are of code that has changed since; type there: "
            f"groundspeed check --keep {' '.join(names)}",
            file=sys.stderr,
        )
    return 0


def _this_machine() -> str:
    from groundspeed.machine import chosen_device, machine_name

    return machine_name(chosen_device())


def _refuse_dtypes_of_none(tree: Tree, operators: Sequence[str], dtypes: Sequence[str]) -> None:
    """Raise UserError where dtypes leave no case of any operator. A spec that cannot be used has its own line later."""
    known: list[str] = []
    for operator in operators:
        try:
            known += tree.spec(operator).dtypes
        except SpecError:
            return
    if dtypes and not set(dtypes) & set(known):
        there = ", ".join(dict.fromkeys(known))
        raise UserError(f"no check case of {', '.join(operators)} is of {' or '.join(dtypes)}: there are {there}")


def _patterns(targets: Sequence[str | None]) -> tuple[str, ...]:
    """The implementations asked for; none means all, also where the operator is named on its own beside them."""
    return () if None in targets else tuple(name for name in targets if name is not None)


def _show(display: Display, event: Progress) -> None:
    where = f"{event.implementation} case {event.case + 1} of {event.cases}".strip()
    display.update(_ALL, event.phase, f"{event.operator} {where}".strip(), event.rows / max(event.rows_expected, 1))


def _tally(rows: Sequence[Measurement]) -> str:
    implementations = {row.implementation for row in rows if row.status != "skipped"}
    right = sum(row.status == "ok" for row in rows)
    wrong = sum(row.status == "failed" for row in rows)
    return f"{counted(len(implementations), 'implementation')}, {counted(right, 'check')} passed, {wrong} failed"


def _still_to_write(tree: Tree, entries: dict[str, Sequence[Measurement]], style: Style) -> list[str]:
    """What ``groundspeed new`` left to be written, in the specs and implementations that were checked."""
    marked: list[Unfinished] = []
    for operator, rows in entries.items():
        checked = {row.implementation for row in rows}
        files = [file for one in tree.implementations(operator) if one.name in checked for file in one.files]
        marked += unfinished([tree.spec_file(operator), *files])
    if not marked:
        return []
    lines = [style.bold("Still to write")]
    for one in marked:
        lines += [
            f"  {shown(one.file)}:{one.line}",
            *textwrap.wrap(one.wanted, style.width, initial_indent="    ", subsequent_indent="    "),
        ]
    return [*lines, ""]


def _verdict(entries: dict[str, Sequence[Measurement]], style: Style) -> str:
    """The one line that says it: how many are right, wrong and not looked at."""
    from groundspeed.report.remarks import count

    right, wrong, left = (count(entries, status) for status in ("ok", "failed", "skipped"))
    if wrong:
        return style.bad(f"{counted(wrong, 'check')} failed, {right:,} passed, {left:,} skipped")
    if not right:
        return style.bad(f"nothing could be checked here: {left} skipped, for the reasons above")
    return style.good(f"{counted(right, 'check')} passed, {left:,} skipped")
