"""What a run is to measure: from what was typed, or from what a run that is resumed was narrowed to."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from groundspeed.commands import emptiness, narrowing
from groundspeed.commands.narrowing import Narrowing
from groundspeed.project import Project, Target, find_project, parse_targets
from groundspeed.selection import Selection
from groundspeed.tree import BASELINE, Tree
from groundspeed.writable import check_writable


@dataclass(frozen=True)
class Planned:
    """A run before it is opened.

    whole
        What the run as a whole is narrowed to.
    operators
        operator → patterns of its implementations, empty for all; without those of which no case is selected.
    """

    project: Project
    results: Path
    chosen: Narrowing
    whole: Selection
    operators: dict[str, tuple[str, ...]]


def planned(arguments: argparse.Namespace) -> Planned:
    """Raises UserError for what is wrong with the arguments, and for a results folder that cannot be written to."""
    project = find_project(arguments.project)
    results = (arguments.results or project.results).resolve()
    tree = project.tree()
    check_writable(results)
    chosen = narrowing.narrowing(arguments, results)
    plan = _plan(parse_targets(chosen.only, tree), tree)
    whole = Selection(
        tuple(plan), _patterns(plan), chosen.dtypes, chosen.tier, timer=chosen.timer, energy=chosen.energy
    )
    empty = emptiness.without_cases(plan, whole, tree)
    emptiness.check_some_left(tuple(plan), empty, whole, tree)
    if empty:
        print(f"groundspeed: {emptiness.left_out(empty, whole)}", file=sys.stderr)
    there = {operator: patterns for operator, patterns in plan.items() if operator not in empty}
    return Planned(project, results, chosen, whole, there)


def _plan(targets: Sequence[Target], tree: Tree) -> dict[str, tuple[str, ...]]:
    """operator → patterns of its implementations, empty for all; the baseline always runs beside what is named."""
    if not targets:
        return dict.fromkeys(tree.operators(), ())
    plan: dict[str, tuple[str, ...]] = {}
    for operator in dict.fromkeys(target.operator for target in targets):
        named = [target.implementation for target in targets if target.operator == operator]
        patterns = dict.fromkeys([BASELINE, *(name for name in named if name is not None)])
        plan[operator] = () if None in named else tuple(patterns)
    return plan


def _patterns(plan: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """What the run as a whole is narrowed to: nothing as soon as one operator is whole."""
    return () if not all(plan.values()) else tuple(dict.fromkeys(name for names in plan.values() for name in names))
