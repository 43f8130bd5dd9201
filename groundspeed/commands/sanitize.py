"""Run implementations under NVIDIA's compute-sanitizer, on every check case of their operators.

  groundspeed sanitize                           all cuda_* under memcheck
  groundspeed sanitize softmax --tool racecheck  one operator's
  groundspeed sanitize relu/cuda_shared          one implementation, or pattern

memcheck finds accesses out of bounds or misaligned, racecheck races in shared memory, initcheck reads of memory that
nobody wrote, synccheck wrong barriers. docs/profiling.md says what each leaves out.

Exit status: 0 all is clean, 1 errors were found, 2 wrong use, or something could not be watched.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from groundspeed.cores import usable_cores
from groundspeed.errors import UserError
from groundspeed.project import find_project, parse_targets

if TYPE_CHECKING:
    from groundspeed.tree import Implementation, Tree

_BACKEND = "cuda"
_MOST_JOBS = 16  # each holds a context of its own on the GPU
_TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("targets", nargs="*", metavar="OPERATOR[/IMPL]", help="what to run (default: all cuda_*)")
    parser.add_argument("--tool", choices=_TOOLS, default="memcheck", help="what to look for (default: memcheck)")
    parser.add_argument("--jobs", type=_positive, metavar="N", help="processes side by side (default: one a core, 16)")


def run(arguments: argparse.Namespace) -> int:
    from groundspeed.machine import chosen_device
    from groundspeed.measure.claim import Patience
    from groundspeed.measure.lane import default_place, hold
    from groundspeed.report.style import Style
    from groundspeed.sanitizer.report import summary_line, verdict_lines
    from groundspeed.sanitizer.sweep import exit_status, sweep
    from groundspeed.sanitizer.tool import find_sanitizer

    tree = find_project(arguments.project).tree()
    chosen = _chosen(arguments.targets, tree)
    tool = find_sanitizer()
    if chosen_device() != "cuda":
        raise UserError("sanitize needs an NVIDIA GPU that torch can use, and there is none")
    began = time.monotonic()
    style = Style.of()
    wide = max(len(f"{one.operator}/{one.name}") for one in chosen)
    verdicts = []
    jobs = arguments.jobs or min(_MOST_JOBS, usable_cores())
    place = default_place("cuda")
    with hold(place, Patience(advice="type it again when that has ended")):
        _build(tree, chosen, place.gpu.uuid if place.gpu else "0")
        for verdict in sweep(tree, chosen, tool, arguments.tool, jobs, place.variables):
            verdicts.append(verdict)
            print("\n".join(verdict_lines(verdict, wide, style)), flush=True)
    print(f"\n{summary_line(verdicts, arguments.tool, time.monotonic() - began, style)}")
    return exit_status(verdicts)


def _chosen(targets: Sequence[str], tree: Tree) -> list[Implementation]:
    """Of an operator alone its ``cuda_*``; what is named with its implementation, of any back end.

    One that is spread over processes is refused where it is named, and left out of what a pattern fits.
    """
    import fnmatch

    named = parse_targets(targets, tree)
    wanted = []
    for operator in tree.operators():
        if tree.is_spread(operator):
            if operator in {text.partition("/")[0] for text in targets}:
                raise UserError(
                    f"{operator} is spread over processes, and compute-sanitizer is run on one; leave it out"
                )
            continue
        of_it = [target.implementation or f"{_BACKEND}_*" for target in named if target.operator == operator]
        patterns = of_it if named else [f"{_BACKEND}_*"]
        wanted += [one for one in tree.implementations(operator) if any(fnmatch.fnmatch(one.name, p) for p in patterns)]
    if not wanted:
        raise UserError(
            f"no {_BACKEND}_* implementation in {', '.join(targets) or 'the tree'}; name one: OPERATOR/IMPL"
        )
    return wanted


def _build(tree: Tree, chosen: Sequence[Implementation], gpu: str) -> None:
    """Compile what is not compiled yet, before anything is watched. A file that fails says so when it is loaded."""
    from groundspeed.build import build_each, find_toolchain

    sources = [(tree.home(one).root, one.cuda_source) for one in chosen if one.cuda_source]
    capability = _capability(gpu)
    if not sources or not capability:
        return  # each process builds its own
    print(f"building {len(sources)} .cu files", file=sys.stderr, flush=True)
    build_each(sources, find_toolchain(capability))


def _capability(gpu: str) -> str:
    """A GPU's, as ``9.0``; empty where nvidia-smi does not tell. Neither torch nor CUDA is started."""
    query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader", "-i", gpu]
    try:
        said = subprocess.run(query, capture_output=True, text=True, timeout=60, check=False)
    except (FileNotFoundError, PermissionError):
        return ""
    text = said.stdout.strip().splitlines()
    return text[0].strip() if said.returncode == 0 and text else ""


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes")
    return int(text)
