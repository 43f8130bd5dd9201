"""What stands of records and kept checks: rows of implementations and cases that the project still has."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from groundspeed.errors import UserError
from groundspeed.project import Project, shown

if TYPE_CHECKING:
    from groundspeed.operator import Case
    from groundspeed.records import Measurement
    from groundspeed.report.kept_checks import There
    from groundspeed.report.standing import Standing
    from groundspeed.tree import Tree


def standing_here(project: Project, results: Path, machine: str, tiers: tuple[str, ...]) -> dict[str, list[Standing]]:
    """operator → what stands of a machine's records of some tiers, without operators of which nothing does.

    Raises UserError for a record that cannot be read, and for a spec that cannot be used.
    """
    from groundspeed.report.standing import standing
    from groundspeed.report.stored import history, newest_first

    tree, newest = project.tree(), newest_first(results, machine)
    found = {}
    for operator in tree.operators():
        records, problems = history(newest.get(operator, ()), tiers)
        if problems:
            raise UserError(f"{problems[0]}: restore it from git, or delete it")
        parts = standing(records, _there(tree, operator, tree.spec(operator).bench_cases)) if records else []
        if parts:
            found[operator] = parts
    return found


def still_there(tree: Tree) -> There:
    """Whether an implementation has a file and a case is among its spec's: later checks lack what is gone."""
    operators = tree.operators()

    @functools.cache
    def of(operator: str) -> Callable[[Measurement], bool]:
        return _there(tree, operator, tree.spec(operator).check_cases)

    return lambda operator, row: operator in operators and of(operator)(row)


def nothing_stands(folder: Path, tiers: tuple[str, ...]) -> str:
    """What is told where ``standing_here`` finds nothing in a machine's folder."""
    return f"{shown(folder)} holds no run of tier {' or '.join(tiers)} that timed what is in impls/; pass --results DIR"


def _there(tree: Tree, operator: str, cases: Iterable[Case]) -> Callable[[Measurement], bool]:
    """Whether a measurement's implementation has a file, and its case is one of these of the spec.

    A newer run lacks what is gone as it lacks what it was narrowed from, so records alone cannot tell.
    """
    names = {one.name for one in tree.implementations(operator)}
    labels = {case.label for case in cases}
    return lambda entry: entry.implementation in names and entry.case_label in labels
