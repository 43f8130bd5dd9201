"""A claim about a forward pass and its backward pass together: two operators, ``x`` and ``x_backward``.

Of each operator both sides of the ratio come from one record, so that a ratio never spans two sessions of an operator.
A case counts where both operators have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from groundspeed.analysis.claims.ledger import Claim, Family
from groundspeed.analysis.claims.ours import COSTS, Value, cheapest, entries
from groundspeed.analysis.claims.shelf import Shelf
from groundspeed.records import Record

_Costs = dict[str, dict[Family, float]]  # of one pass: case label -> family -> its cost

_JOINED: dict[str, tuple[str, Callable[[Iterable[float]], Any]]] = {
    "training speedup": ("speedup", sum),
    # The passes do not run at once: what the step needs is what the larger of them needs.
    "training memory": ("memory", max),
}


def joined(claim: Claim, shelf: Shelf) -> tuple[Record | None, list[Value]]:
    """A value for each case that both passes have, and the forward record it is from: the newest pair with any."""
    for forward in shelf.newest(claim.operator):
        for backward in shelf.newest(claim.operators[1]):
            found = _ratios(claim, forward, backward)
            if found:
                return forward, found
    return None, []


def _ratios(claim: Claim, forward: Record, backward: Record) -> list[Value]:
    ours = _least(claim, forward, backward, claim.families)
    over = _least(claim, forward, backward, claim.over_families)
    return [(case, over[case] / cost) for case, cost in ours.items() if case in over]


def _least(claim: Claim, forward: Record, backward: Record, families: tuple[Family, ...]) -> dict[str, float]:
    """What both passes cost on each case, with the family that is cheapest for the two together."""
    cost, join = _JOINED[claim.quantity]
    ahead, behind = _costs(claim, cost, forward, families, 0), _costs(claim, cost, backward, families, 1)
    least: dict[str, float] = {}
    for case in (case for case in ahead if case in behind):
        both = [join((ahead[case][family], behind[case][family])) for family in ahead[case] if family in behind[case]]
        if both:
            least[case] = min(both)
    return least


def _costs(claim: Claim, cost: str, record: Record, families: tuple[Family, ...], place: int) -> _Costs:
    found: _Costs = {}
    for family in families:
        for entry in cheapest(entries(record, family[place], claim.dtype, claim.cases), COSTS[cost]):
            value = COSTS[cost](entry)
            if value:
                found.setdefault(entry.case_label, {})[family] = value
    return found
