"""Operators of which nothing is selected: said before anything is measured, so that none leaves a record of nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groundspeed.errors import UserError
from groundspeed.operator import DTYPES, TIERS
from groundspeed.selection import Selection
from groundspeed.tree import SpecError, Tree


def without_cases(operators: Iterable[str], selection: Selection, tree: Tree) -> list[str]:
    """Those of which no case is selected; one with a broken spec is not among them: its fault is for its turn."""
    found = []
    for operator in operators:
        try:
            spec = tree.spec(operator)
        except SpecError:
            continue
        if not selection.cases(spec):
            found.append(operator)
    return found


def check_some_left(operators: Sequence[str], empty: Sequence[str], selection: Selection, tree: Tree) -> None:
    """Raises UserError, with the dtypes that each tier has cases of, when no operator has a selected case."""
    if not operators or len(empty) < len(operators):
        return
    has = {
        tier: {case.dtype for operator in operators for case in tree.spec(operator).tier_cases(tier)} for tier in TIERS
    }
    known = [f"{tier}: {', '.join(name for name in DTYPES if name in has[tier])}" for tier in TIERS if has[tier]]
    other = next((tier for tier in TIERS if has[tier] & set(selection.dtypes or DTYPES)), None)
    hint = f"; add --tier {other}" if other else ""
    raise UserError(f"{_what(selection)} of {_named(operators)}; there are {'; '.join(known)}{hint}")


def left_out(empty: Sequence[str], selection: Selection) -> str:
    """The line that names them."""
    return f"not measured: {_what(selection)} of {', '.join(empty)}"


def _what(selection: Selection) -> str:
    dtypes = f"{' or '.join(selection.dtypes)} " if selection.dtypes else ""
    return f"tier {selection.tier} has no {dtypes}case"


def _named(operators: Sequence[str]) -> str:
    return ", ".join(operators) if len(operators) <= 5 else f"any of {len(operators)} operators"
