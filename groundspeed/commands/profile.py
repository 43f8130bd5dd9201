"""Run one case of one implementation under a profiler, and say what bounds it.

  groundspeed profile softmax/triton_row                        its largest case
  groundspeed profile softmax/triton_row float16 M=8192,N=8192  this one
  groundspeed profile softmax/triton_row --with torch           this profiler

ncu counts what happens inside each kernel, nsys shows what ran when, torch works everywhere, on a CPU too. Without
--with it is ncu where that is installed and allowed to read counters, else torch, with the reason. The page is kept
under results/<machine>/profiles/.

Exit status: 0 done, 2 wrong use, or it could not be profiled.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from groundspeed.errors import UserError
from groundspeed.locations.place import folder
from groundspeed.project import find_project, near, parse_target

if TYPE_CHECKING:
    from groundspeed.operator import Case
    from groundspeed.profiling.protocol import Ask
    from groundspeed.profiling.run import Seen
    from groundspeed.tree import Implementation, Tree

_TOOLS = ("ncu", "nsys", "torch")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="OPERATOR/IMPL", help="what to profile")
    parser.add_argument(
        "case",
        nargs="*",
        metavar="CASE",
        help="a dtype, a shape, or both (default: the largest of tier core)",
    )
    parser.add_argument("--with", dest="tool", choices=_TOOLS, help="the profiler (default: ncu, else torch)")
    parser.add_argument("--results", type=folder, metavar="DIR", help="where the page goes (default: results/)")


def run(arguments: argparse.Namespace) -> int:
    from groundspeed import git
    from groundspeed.analysis.profiles import profile_path, write_profile
    from groundspeed.machine import chosen_device, machine_name
    from groundspeed.measure.claim import Patience
    from groundspeed.measure.lane import default_place, hold
    from groundspeed.profiling.choose import choose_cases
    from groundspeed.profiling.compose import compose
    from groundspeed.profiling.page import markdown, terminal
    from groundspeed.profiling.position import stored
    from groundspeed.profiling.protocol import Ask
    from groundspeed.report.style import Style
    from groundspeed.writable import check_writable

    project = find_project(arguments.project)
    results = (arguments.results or project.results).resolve()
    check_writable(results)
    tree = project.tree()
    one = _one(arguments.target, tree)
    device = chosen_device()
    cases = choose_cases(one.operator, tree.spec(one.operator), arguments.case, device)
    place = default_place(device)
    ask = Ask(
        tree=str(tree.root),
        operator=one.operator,
        implementation=one.name,
        cases=tuple((case.dtype, case.shape) for case in cases),
        device=device,
        calls=1,
        variables=place.variables,
    )
    with hold(place, Patience(advice="type it again when that has ended")):
        seen, reason = _seen(ask, arguments.tool)
    case = _case(seen)
    machine, commit = machine_name(device), git.head(project.root)
    found = stored(results, machine, one.operator, one.name, case, tree.implementation_digest(one))
    page = compose(f"{one.operator}/{one.name}", seen, reason, tree.spec(one.operator), case, found, commit)
    print("\n".join(terminal(page, Style.of())))
    kept = profile_path(results, machine, one.operator, one.name, case.label, commit.hash, commit.dirty, seen.tool)
    write_profile(kept, markdown(page))
    shown = kept.relative_to(Path.cwd()) if kept.is_relative_to(Path.cwd()) else kept
    print(f"\nPage     {shown}")
    return 0


def _one(text: str, tree: Tree) -> Implementation:
    """The one implementation that is named."""
    target = parse_target(text, tree)
    names = [one.name for one in tree.implementations(target.operator)]
    if target.implementation not in names:
        hint = near(target.implementation or "", names)
        raise UserError(f"{text!r} is not one implementation{hint}; type: groundspeed profile OPERATOR/IMPL")
    if tree.spec(target.operator).world:
        raise UserError(
            f"{target.operator} is spread over processes, and a profiler here follows one; "
            f"type: groundspeed run --only {target.operator}"
        )
    return tree.implementation(target.operator, target.implementation)


def _seen(ask: Ask, wanted: str | None) -> tuple[Seen, str]:
    """What the profiler saw, and why it is not the one that would have seen more."""
    from groundspeed.profiling.run import Refused, profile

    if wanted:
        try:
            return profile(ask, wanted), ""
        except Refused as refused:
            raise UserError(f"{refused}; or profile --with torch") from refused
    reason = ""
    if ask.device == "cuda":
        try:
            return profile(ask, "ncu"), ""
        except Refused as refused:
            reason = f"Not with ncu: {refused}."
            print(reason, file=sys.stderr, flush=True)
    return profile(ask, "torch"), reason


def _case(seen: Seen) -> Case:
    from groundspeed.operator import Case

    if seen.answer.case is None:
        raise UserError("the profiled process answered without a case")
    return Case(*seen.answer.case)
