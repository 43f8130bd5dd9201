"""Measure, and print the speedup table.

  groundspeed run                              the small tier of everything
  groundspeed run --tier core --only softmax   one operator
  groundspeed run --tier core --only softmax/triton_* --dtype float16
  groundspeed run --gpus all                   an operator a GPU at a time
  groundspeed run --resume ID                  go on with a run that was ended
  groundspeed run --shard 1/4                  a quarter; then groundspeed merge
  groundspeed run --fleet auto                 over the GPUs of a Ray cluster

Each operator's record is on disk when its sweep ends. Exit status: 0 everything is measured or skipped with a
reason, 1 an implementation failed, 2 wrong use, a broken spec, a record that could not be written, or a GPU that
did not become free.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from groundspeed.errors import UserError
from groundspeed.fleet import options as fleet_options
from groundspeed.locations.place import folder
from groundspeed.operator import TIERS
from groundspeed.selection import FIRST_CALLS, TIMERS

if TYPE_CHECKING:
    from groundspeed.measure.lane import Place

_WAIT_MINUTES = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tier", choices=TIERS, help="which bench cases (default: small, or the resumed run's)")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="OPERATOR[/IMPL]",
        help="narrow to this; may be given again; both may be patterns, and torch_eager is always measured beside them",
    )
    parser.add_argument("--dtype", action="append", default=[], metavar="DTYPE", help="narrow to this; may be repeated")
    parser.add_argument("--timer", choices=TIMERS, help="what times on a GPU (default: cupti; see docs/measuring.md)")
    parser.add_argument(
        "--energy",
        action="store_true",
        help="measure joules a call; the full tier always does, in an operator's largest core case",
    )
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
        "--results", type=folder, metavar="DIR", help="where records go (default: results/ of the project)"
    )
    fleet_options.add(parser)


def run(arguments: argparse.Namespace) -> int:
    fleet_options.check(arguments)
    if arguments.fleet:
        from groundspeed.commands.fleet_run import run_on_fleet

        return run_on_fleet(arguments)
    return _run_here(arguments)


def _run_here(arguments: argparse.Namespace) -> int:
    import msgspec

    from groundspeed import session
    from groundspeed.commands import narrowing, run_ending, sweeping
    from groundspeed.commands.planning import planned
    from groundspeed.machine import chosen_device, machine_of
    from groundspeed.measure.claim import Patience
    from groundspeed.measure.first_call_subset import read_subset

    plan = planned(arguments)
    chosen, there = plan.chosen, plan.operators
    device = chosen_device()
    _check_gpu_options(arguments, device)
    places = _places(arguments.gpus, device)
    # Each worker sees one GPU of this kind, and so its results belong beside those of hosts that have one.
    machine = machine_of([place.gpu for place in places[:1] if place.gpu]) if arguments.gpus else None
    opened = session.open_run(
        plan.project.root,
        plan.results,
        plan.whole,
        device=device,
        run_id=arguments.resume,
        machine=machine,
        first_call=read_subset(plan.project.root) if chosen.first_call else (),
    )
    sweeping.check_first_calls(opened, there)
    if arguments.shard is not None and chosen.shard is None:
        chosen = msgspec.structs.replace(chosen, shard=sweeping.shard_of(opened, there, arguments.shard))
    if chosen.shard is not None:
        there = {operator: patterns for operator, patterns in there.items() if operator in chosen.shard.operators}
        print(f"groundspeed: {sweeping.shard_line(chosen.shard)}", file=sys.stderr)
    folder = opened.record_path("x").parent
    narrowing.keep(folder, chosen)
    again = run_ending.again(opened, arguments, chosen)
    opened = replace(opened, go_on=again)
    advice = "" if arguments.wait else "to wait for it, add --wait"
    try:
        patience = Patience(60 * arguments.wait, advice)
        problems = sweeping.sweep(opened, there, places, patience, f"to go on, type: {again}")
    except (KeyboardInterrupt, UserError) as ended:
        narrowing.drop(folder)
        if isinstance(ended, KeyboardInterrupt):
            run_ending.say_how_to_resume([folder], again)
        raise
    return run_ending.report(opened, problems, arguments.results)


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
