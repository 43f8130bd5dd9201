"""Measure, and print the speedup table.

  groundspeed run                              the small tier of everything
  groundspeed run --tier core --only softmax   one operator
  groundspeed run --tier core --only softmax/triton_* --dtype float16
  groundspeed run --gpus all                   an operator a GPU at a time
  groundspeed run --resume ID                  go on with a run that was ended
  groundspeed run --shard 1/4                  a quarter; then groundspeed merge

Each operator's record is on disk when its sweep ends. Exit status: 0 everything is measured or skipped with a
reason, 1 an implementation failed, 2 wrong use, a broken spec, a record that could not be written, or a GPU that
did not become free.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from groundspeed.errors import UserError
from groundspeed.operator import TIERS
from groundspeed.project import Target, command, find_project, parse_target
from groundspeed.selection import FIRST_CALLS, TIMERS, Selection
from groundspeed.tree import BASELINE, Tree

if TYPE_CHECKING:
    from groundspeed.commands.narrowing import Narrowing
    from groundspeed.measure.lane import Place
    from groundspeed.session import Run

_WAIT_MINUTES = 60.0


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
    parser.add_argument(
        "--first-call",
        choices=FIRST_CALLS,
        help="measure first calls of a subset in fresh processes too, caches empty and full; see docs/measuring.md",
    )
    parser.add_argument(
        "--gpus", metavar="all|0,1", help="measure on these, an operator at a time on each (default: 0)"
    )
    parser.add_argument(
        "--shard", metavar="I/N", help="measure the operators of shard I of N alone; the same ones on every runner"
    )
    parser.add_argument(
        "--wait",
        nargs="?",
        type=float,
        const=_WAIT_MINUTES,
        default=0.0,
        metavar="MINUTES",
        help=f"wait until nobody else uses the GPU, so long at most (default: {_WAIT_MINUTES:.0f})",
    )
    parser.add_argument(
        "--resume",
        metavar="ID",
        help="go on with this run, narrowed as it was: operators it has are not measured again",
    )
    parser.add_argument(
        "--results", type=Path, metavar="DIR", help="where records go (default: results/ of the project)"
    )


def run(arguments: argparse.Namespace) -> int:
    import msgspec

    from groundspeed import session
    from groundspeed.commands import emptiness, narrowing, sweeping
    from groundspeed.machine import chosen_device, machine_of
    from groundspeed.measure.claim import Patience
    from groundspeed.measure.first_call_subset import read_subset
    from groundspeed.writable import check_writable

    project = find_project(arguments.project)
    results = (arguments.results or project.results).resolve()
    tree = project.tree()
    check_writable(results)
    chosen = narrowing.narrowing(arguments, results)
    plan = _plan([parse_target(text, tree) for text in chosen.only], tree)
    whole = Selection(
        tuple(plan), _patterns(plan), chosen.dtypes, chosen.tier, timer=chosen.timer, energy=chosen.energy
    )
    empty = emptiness.without_cases(plan, whole, tree)
    emptiness.check_some_left(tuple(plan), empty, whole, tree)
    device = chosen_device()
    _check_gpu_options(arguments, device)
    places = _places(arguments.gpus, device)
    # Each worker sees one GPU of this kind, and so its results belong beside those of hosts that have one.
    machine = machine_of([place.gpu for place in places[:1] if place.gpu]) if arguments.gpus else None
    subset = read_subset(project.root) if chosen.first_call else ()
    opened = session.open_run(
        project.root,
        results,
        whole,
        device=device,
        run_id=arguments.resume,
        machine=machine,
        first_call=subset,
    )
    there = {operator: patterns for operator, patterns in plan.items() if operator not in empty}
    sweeping.check_first_calls(opened, there)
    if arguments.shard and chosen.shard is None:
        chosen = msgspec.structs.replace(chosen, shard=sweeping.shard_of(opened, there, arguments.shard))
    if chosen.shard is not None:
        there = {operator: patterns for operator, patterns in there.items() if operator in chosen.shard.operators}
        print(f"groundspeed: {sweeping.shard_line(chosen.shard)}", file=sys.stderr)
    folder = opened.record_path("x").parent
    narrowing.keep(folder, chosen)
    again = _again(opened, arguments, chosen)
    opened = replace(opened, go_on=again)
    advice = "" if arguments.wait else "to wait for it, add --wait"
    if empty:
        print(f"groundspeed: {emptiness.left_out(empty, whole)}", file=sys.stderr)
    try:
        patience = Patience(60 * arguments.wait, advice)
        problems = sweeping.sweep(opened, there, places, patience, f"to go on, type: {again}")
    except (KeyboardInterrupt, UserError) as ended:
        narrowing.drop(folder)
        if isinstance(ended, KeyboardInterrupt):
            _say_how_to_resume(opened, again)
        raise
    return _report(opened, problems, arguments.results)


def _places(gpus: str | None, device: str) -> tuple[Place, ...]:
    """Where to measure; CPU options are checked before."""
    from groundspeed.machine import visible_gpus
    from groundspeed.measure.lane import default_place, places

    return (default_place(device),) if gpus is None else places(gpus, visible_gpus())


def _check_gpu_options(arguments: argparse.Namespace, device: str) -> None:
    """What only a GPU has, asked of a CPU by name, would be left out without a word."""
    if device != "cuda" and arguments.timer:
        raise UserError(f"--timer {arguments.timer} is a GPU's, and this run is on the CPU, whose clock is its timer")
    if device != "cuda" and arguments.energy:
        raise UserError("--energy reads a GPU's counter, and this run is on the CPU; leave it out")
    if device != "cuda" and arguments.gpus:
        raise UserError(f"--gpus {arguments.gpus}: this run is on the CPU; leave it out")
    if device != "cuda" and arguments.wait:
        raise UserError("--wait waits for a GPU, and this run is on the CPU; leave it out")
    if arguments.wait < 0:
        raise UserError(f"--wait {arguments.wait:g}: expected minutes, 0 for none")


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


def _report(opened: Run, problems: Sequence[str], typed: Path | None) -> int:
    from groundspeed.report.ending import time_split, where
    from groundspeed.report.energy import energy_table, has_energy
    from groundspeed.report.first_call import first_call_table, has_first_calls
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


def _again(opened: Run, arguments: argparse.Namespace, chosen: Narrowing) -> str:
    """What to type to go on with a run."""
    words = ["run", *chosen.words()]
    for name in ("project", "results", "gpus"):
        words += [f"--{name}", str(getattr(arguments, name))] if getattr(arguments, name) else []
    words += [f"--wait={arguments.wait:g}"] if arguments.wait else []
    return f"{command()} {shlex.join([*words, '--resume', opened.run_id])}"


def _say_how_to_resume(opened: Run, again: str) -> None:
    done = sorted(path.name.partition(".")[0] for path in opened.record_path("x").parent.glob("*.jsonl.gz"))
    if not done:
        print("\ngroundspeed: no operator was finished, nothing is kept", file=sys.stderr)
        return
    print(f"\ngroundspeed: kept {', '.join(done)}; to go on, type: {again}", file=sys.stderr)
