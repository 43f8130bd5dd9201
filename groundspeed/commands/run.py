"""Measure, and print the speedup table.

  groundspeed run                              the small tier of everything
  groundspeed run --tier core --only softmax   one operator
  groundspeed run --only softmax/triton_* --only relu --dtype float16
  groundspeed run --resume ID                  go on with a run that was ended

Each operator's record is on disk when its sweep ends. Exit status: 0 everything is measured or skipped with a
reason, 1 an implementation failed, 2 wrong use, a broken spec, or a record that could not be written.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from groundspeed.errors import UserError
from groundspeed.operator import TIERS
from groundspeed.project import Target, command, find_project, parse_target
from groundspeed.selection import TIMERS, Selection, chosen_energy, chosen_timer
from groundspeed.tree import BASELINE, SpecError, Tree

if TYPE_CHECKING:
    from groundspeed.measure.supervisor import Progress
    from groundspeed.report.progress import Display
    from groundspeed.session import Run


_BEFORE_CASES = ("start", "load", "ceilings")
_INTO_CASE = {"calls": 0.6, "time": 0.65, "memory": 0.95}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tier", choices=TIERS, help="which bench cases (default: small, or the resumed run's)")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="OPERATOR[/IMPL]",
        help="narrow to this; may be given again; IMPL may be a pattern, and torch_eager is always measured beside it",
    )
    parser.add_argument("--dtype", action="append", default=[], metavar="DTYPE", help="narrow to this; may be repeated")
    parser.add_argument("--timer", choices=TIMERS, help="what times on a GPU (default: cupti; see docs/measuring.md)")
    parser.add_argument("--energy", action="store_true", help="measure joules a call; the full tier always does")
    parser.add_argument("--resume", metavar="ID", help="go on with this run: operators it has are not measured again")
    parser.add_argument(
        "--results", type=Path, metavar="DIR", help="where records go (default: results/ of the project)"
    )


def run(arguments: argparse.Namespace) -> int:
    from groundspeed import session

    project = find_project(arguments.project)
    results = (arguments.results or project.results).resolve()
    tree = project.tree()
    targets = [parse_target(text, tree) for text in arguments.only]
    plan = _plan(targets, tree)
    dtypes = tuple(dict.fromkeys(part for text in arguments.dtype for part in text.split(",") if part))
    tier = arguments.tier or _resumed_tier(results, arguments.resume) or "small"
    timer, energy = arguments.timer or chosen_timer(), arguments.energy or chosen_energy()
    whole = Selection(tuple(plan), _patterns(plan), dtypes, tier, timer=timer, energy=energy)
    _check_writable(results)
    opened = session.open_run(project.root, results, whole, run_id=arguments.resume)
    _check_gpu_options(arguments, opened.device)
    problems: list[str] = []
    try:
        _sweep(opened, plan, problems)
    except KeyboardInterrupt:
        _say_how_to_resume(opened, arguments)
        raise
    return _report(opened, problems)


def _check_writable(results: Path) -> None:
    """Before minutes of measuring: a record must find its place."""
    folder = next(folder for folder in (results, *results.parents) if folder.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        what = "is a file" if not folder.is_dir() else "cannot be written to"
        raise UserError(f"no records can be kept in {results}: {folder} {what}; pass --results DIR")


def _check_gpu_options(arguments: argparse.Namespace, device: str) -> None:
    """What only a GPU has, asked of a CPU by name, would be left out without a word."""
    if device != "cuda" and arguments.timer:
        raise UserError(f"--timer {arguments.timer} is a GPU's, and this run is on the CPU, whose clock is its timer")
    if device != "cuda" and arguments.energy:
        raise UserError("--energy reads a GPU's counter, and this run is on the CPU; leave it out")


def _plan(targets: Sequence[Target], tree: Tree) -> dict[str, tuple[str, ...]]:
    """operator → patterns of its implementations, empty for all; the baseline always runs beside what is named."""
    if not targets:
        return dict.fromkeys(tree.operators(), ())
    plan: dict[str, tuple[str, ...]] = {}
    for operator in dict.fromkeys(target.operator for target in targets):
        named = [target.implementation for target in targets if target.operator == operator]
        plan[operator] = () if None in named else (BASELINE, *(name for name in named if name is not None))
    return plan


def _patterns(plan: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """What the run as a whole is narrowed to: nothing as soon as one operator is whole."""
    return () if not all(plan.values()) else tuple(dict.fromkeys(name for names in plan.values() for name in names))


def _resumed_tier(results: Path, run_id: str | None) -> str | None:
    """The tier of a stored run, from the first of its records that can be read: what is added must belong to it."""
    from groundspeed.records import RecordError, find_records, read_record

    for path in find_records(results):
        if path.parent.name == run_id:
            with contextlib.suppress(RecordError):  # named at the end of the run, with the table of the others
                return read_record(path).header.tier
    return None


def _sweep(opened: Run, plan: dict[str, tuple[str, ...]], problems: list[str]) -> None:
    """Measure operator after operator; one that cannot be measured leaves its reason and stops no other."""
    from groundspeed import session
    from groundspeed.report.progress import Display, Estimate
    from groundspeed.report.style import Style

    narrowed = {
        name: replace(opened, selection=replace(opened.selection, implementations=patterns, operators=(name,)))
        for name, patterns in plan.items()
    }
    display = Display(sys.stderr, Style.of(sys.stderr), Estimate(_expected(narrowed)))
    for operator, one in narrowed.items():
        if one.record_path(operator).exists():
            display.say(f"{operator}: already in run {one.run_id}")
            continue
        try:
            display.begin(operator, _summary(one, operator))
            session.measure_operator(one, operator, partial(_show, display, names=_able(one, operator)))
            display.end(operator, "measured")
        except UserError as error:
            display.end(operator, "could not be measured")
            problems.append(str(error))


def _show(display: Display, event: Progress, names: Sequence[str]) -> None:
    case = f"case {event.case + 1} of {event.cases}" if event.phase not in _BEFORE_CASES else ""
    where = ", ".join(part for part in (event.implementation, case) if part)
    display.update(event.operator, event.phase, where, _share(event, names))


def _share(event: Progress, names: Sequence[str]) -> float:
    """Of an operator's work: whole cases, and how far into the present one. Roughly, for the bar."""
    if event.phase in _BEFORE_CASES or not event.cases:
        return 0.0
    within = _INTO_CASE.get(event.phase, 0.0)
    if event.implementation in names and event.phase in ("prepare", "first run", "check"):
        within = _INTO_CASE["calls"] * names.index(event.implementation) / len(names)
    return (event.case + within) / event.cases


def _summary(opened: Run, operator: str) -> str:
    implementations, cases = _extent(opened, operator)
    return f"{implementations} implementations, {cases} cases on {opened.machine}"


def _extent(opened: Run, operator: str) -> tuple[int, int]:
    """How many implementations can be timed here, and how many cases there are; no case of a broken spec."""
    able = len(_able(opened, operator))
    try:
        return able, len(opened.selection.cases(opened.tree.spec(operator)))
    except SpecError:
        return able, 0


def _able(opened: Run, operator: str) -> list[str]:
    """The selected implementations that this device can time: all on a GPU, PyTorch's own on a CPU."""
    chosen = [one for one in opened.tree.implementations(operator) if opened.selection.includes(one)]
    return [one.name for one in chosen if opened.device == "cuda" or one.backend == "torch"]


def _expected(narrowed: dict[str, Run]) -> dict[str, float]:
    """operator → seconds it will take, from the last run of this machine and tier, else from what is usual."""
    from groundspeed.report.stored import latest_records

    opened = next(iter(narrowed.values()))
    known = {}
    records, _ = latest_records(opened.results, opened.machine, [opened.selection.tier])  # an estimate needs no more
    for record in records:
        timed = sum(entry.status == "ok" for entry in record.measurements)
        known[record.header.operator] = record.footer.seconds.get("total", 0.0) / max(timed, 1)
    start, each = (15.0, 1.0) if opened.device == "cuda" else (8.0, 4.0)
    expected = {}
    for operator, one in narrowed.items():
        implementations, cases = _extent(one, operator)
        count = implementations * cases
        expected[operator] = count * known[operator] if known.get(operator) else start + count * each
    return expected


def _report(opened: Run, problems: Sequence[str]) -> int:
    from groundspeed.report.ending import time_split, where
    from groundspeed.report.energy import energy_table, has_energy
    from groundspeed.report.remarks import count, measured, remarks
    from groundspeed.report.stored import run_records
    from groundspeed.report.style import Style
    from groundspeed.report.table import operator_table

    records, unreadable = run_records(opened.results, opened.machine, opened.run_id)
    style = Style.of()
    lines = [""]
    for record in records:
        lines += operator_table(record, style)
    lines += [line for record in records if has_energy(record) for line in energy_table(record, style)]
    lines += remarks(records, style)
    lines += time_split(records, style)
    lines += where(opened.record_path("x").parent, records, command())
    print("\n".join(lines))
    sys.stdout.flush()
    for problem in [*problems, *unreadable]:
        print(f"groundspeed: {problem}", file=sys.stderr)
    if problems or unreadable:
        return 2
    return 1 if count(measured(records), "failed") else 0


def _say_how_to_resume(opened: Run, arguments: argparse.Namespace) -> None:
    done = sorted(path.name.partition(".")[0] for path in opened.record_path("x").parent.glob("*.jsonl.gz"))
    if not done:
        print("\ngroundspeed: no operator was finished, nothing is kept", file=sys.stderr)
        return
    again = ["run", "--tier", opened.selection.tier]
    for text in arguments.only:
        again += ["--only", text]
    for text in arguments.dtype:
        again += ["--dtype", text]
    if arguments.results:
        again += ["--results", str(arguments.results)]
    again += ["--timer", arguments.timer] if arguments.timer else []
    again += ["--energy"] if arguments.energy else []
    again += ["--resume", opened.run_id]
    print(f"\ngroundspeed: kept {', '.join(done)}; to go on, type: {command()} {shlex.join(again)}", file=sys.stderr)
