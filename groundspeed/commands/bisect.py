"""Find the commit between a good and a bad one that made an implementation slower (or hungrier, or less accurate).

groundspeed bisect softmax/triton_row v1.0 HEAD
groundspeed bisect softmax/triton_row float16 M=8192,N=8192 v1.0 HEAD

Each step loads the good commit's files and another's into one process, alternates them, and judges by the gate's rule.
Inputs, reference and harness are the working tree's. Commits that break or cannot be told are passed over: the answer
is then a range. Without a case, the one that got worst of tier core (on a CPU, small) is followed.

Exit status: 0 found, 1 good and bad do not differ, 2 could not measure or wrong use.
"""

from __future__ import annotations

import argparse
import math
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from groundspeed.bisect import words
from groundspeed.bisect.commits import Version, Versions, ancestors_only, row_of
from groundspeed.bisect.comparing import Comparing
from groundspeed.bisect.hunt import Hunt, SameSpeed
from groundspeed.errors import UserError
from groundspeed.gate.config import Config, Override, read_config
from groundspeed.gate.evidence import Judging
from groundspeed.gate.floors import noise_folder, read_floors
from groundspeed.gate.gate_command import engine, one_engine
from groundspeed.gate.git import resolve
from groundspeed.gate.metrics import METRICS, Metric
from groundspeed.gate.paired import MeasurePairs
from groundspeed.gate.plain import plain
from groundspeed.machine import chosen_device, machine_name, measuring_device
from groundspeed.profiling.choose import choose_cases
from groundspeed.project import Project, find_project, near
from groundspeed.tree import Tree

FOUND, SAME = 0, 1
DEFAULT_METRIC = "device_cold"
MOST_THRESHOLD = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="OPERATOR/IMPL", help="what became slower, by its name at BAD")
    parser.add_argument("case", nargs="*", metavar="CASE", help="a dtype, a shape, or both")
    parser.add_argument("good", metavar="GOOD", help="a commit at which it was fast")
    parser.add_argument("bad", metavar="BAD", help="a later one, at which it is slow")
    parser.add_argument("--metric", default=DEFAULT_METRIC, metavar="NAME", help=f"default: {DEFAULT_METRIC}")
    parser.add_argument("--threshold", metavar="T", help="3%% or 0.03 (default: the gate's)")
    parser.add_argument("--device", choices=("cuda", "cpu"), help="default: a GPU where there is one")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs")


def run(args: argparse.Namespace) -> int:
    measuring_device(args.device)
    with one_engine(engine) as found:
        return run_with(args, found)


def run_with(args: argparse.Namespace, find_engine: Callable[[], MeasurePairs]) -> int:
    """The command with a given engine. Raises UserError for wrong use, and for what cannot be measured."""
    project = find_project(args.project)
    metric = _metric(args.metric)
    threshold = None if args.threshold is None else parse_threshold(args.threshold)
    operator, name = _target(args.target)
    example = f"groundspeed bisect {args.target} GOOD BAD"
    good, bad = (resolve(project.root, revision, example) for revision in (args.good, args.bad))
    ancestors_only(project.root, good, bad)
    device = args.device or chosen_device()
    with tempfile.TemporaryDirectory(prefix="groundspeed-bisect-") as folder:
        specs = _todays_specs(project, Path(folder) / "specs")
        cases = choose_cases(operator, specs.spec(operator), args.case, device)
        versions = Versions(project.root, operator, name, bad, Path(folder))
        for end, commit in ((f"BAD {args.bad}", bad), (f"GOOD {args.good}", good)):
            _require(versions.of(commit), operator, name, end)
        row = row_of(versions, good, bad)
        asked = words.Asked(project.root, args.target, args.good, args.bad, metric.label, _options(args))
        print(words.headline(asked, row), flush=True)
        if not row.versions:
            print(words.nothing(asked))
            return SAME
        judging = _judging(project, device, metric, threshold, (operator, name))
        comparing = Comparing(find_engine(), specs, operator, versions.of(good), judging, args.seed, _progress)
        hunt = Hunt(versions.of(good), row.versions, comparing.compare, lambda *step: _say(words.told(asked, *step)))
        try:
            found = hunt.run(cases)
        except SameSpeed as same:
            print(words.same(asked, str(same)))
            return SAME
        print("\n".join(words.answer(asked, versions.of(good), found)))
        return FOUND


def parse_threshold(text: str) -> float:
    """0.03 of ``3%`` or ``0.03``. Raises UserError for anything else."""
    percent = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    try:
        value = float(percent[1]) / 100 if percent else float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= MOST_THRESHOLD:
        raise UserError(
            f"--threshold {text}: expected a share above 0 and up to {MOST_THRESHOLD:.0%}, such as 3% or 0.03"
        )
    return value


def _metric(name: str) -> Metric:
    if name not in METRICS:
        raise UserError(f"--metric {name}: no such metric{near(name, METRICS)}")
    return METRICS[name]


def _target(text: str) -> tuple[str, str]:
    operator, _, name = text.partition("/")
    if not name:
        raise UserError(f"{text!r} names no implementation: OPERATOR/IMPL is expected; type: groundspeed list {text}")
    return operator, name


def _require(version: Version, operator: str, name: str, end: str) -> None:
    if version.implementation:
        return
    there = [one.name for one in Tree(version.tree).implementations(operator)] if version.tree else []
    raise UserError(f"{end} has no {operator}/{name}{near(name, there)}")


def _todays_specs(project: Project, target: Path) -> Tree:
    """A copy, so that an edit during the search changes nothing."""
    shutil.copytree(project.root / "impls", target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    return Tree(target)


def _judging(
    project: Project, device: str, metric: Metric, threshold: float | None, target: tuple[str, str]
) -> Judging:
    """The working tree's policy, for this one metric."""
    file = project.root / "pyproject.toml"
    config = read_config(file.read_text(encoding="utf-8") if file.is_file() else "")
    config = _narrowed(config, metric, threshold, target)
    return Judging(config, device, read_floors(noise_folder(project.results, machine_name(device))))


def _narrowed(config: Config, metric: Metric, threshold: float | None, target: tuple[str, str]) -> Config:
    """A threshold that was typed is stronger than any override of the policy's."""
    overrides = config.overrides
    if threshold is not None:
        overrides = (*overrides, Override(*target, metric=metric.name, threshold=threshold))
    return replace(config, metrics=(metric.name,), overrides=overrides)


def _options(args: argparse.Namespace) -> tuple[str, ...]:
    """The options to type again."""
    given: list[str] = []
    if args.metric != DEFAULT_METRIC:
        given += ["--metric", args.metric]
    for name in ("threshold", "device"):
        if getattr(args, name) is not None:
            given += [f"--{name}", getattr(args, name)]
    return (*given, "--seed", str(args.seed)) if args.seed else tuple(given)


def _say(line: str) -> None:
    print(line, flush=True)


def _progress(line: str) -> None:
    print(line[: len(line) - len(line.lstrip())] + plain(line), file=sys.stderr, flush=True)
