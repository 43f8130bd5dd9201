"""A verdict on each claim, from the newest record that has something to say to it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Literal

from groundspeed.analysis.claims.ledger import Claim
from groundspeed.analysis.claims.ours import Value, values
from groundspeed.analysis.claims.quantities import QUANTITIES, Quantity
from groundspeed.analysis.claims.shelf import Shelf
from groundspeed.analysis.claims.training import joined
from groundspeed.analysis.stats import geometric_mean
from groundspeed.records import Record

Verdict = Literal["reproduced", "exceeded", "not reproduced", "measured", "not measured"]

# A published figure is given to one or two digits: what rounds to it reproduces it.
ROUNDING = 0.05


@dataclass(frozen=True)
class Answer:
    """What our records say to a claim.

    ``ours`` is the geometric mean over the cases, in the quantity's unit; ``cases`` are the cases' own values by label,
    or the operators' where the claim is about several; ``gpu`` is the device they were measured on.
    """

    claim: Claim
    verdict: Verdict
    ours: float | None
    cases: tuple[Value, ...]
    gpu: str
    command: str

    @property
    def quantity(self) -> Quantity:
        return QUANTITIES[self.claim.quantity]

    @property
    def other_gpu(self) -> bool:
        """Whether ours is not the GPU that a figure was published for, or that one is not told."""
        if self.claim.published is None:
            return False
        return bool(self.gpu) and (not self.claim.gpu or self.claim.gpu.casefold() not in self.gpu.casefold())

    @property
    def published(self) -> str:
        """``1.15× to 1.30×``, or one figure."""
        if self.claim.published is None:
            return "no figure"
        low, high = self.claim.published
        show = self.quantity.show
        return show(low) if low == high else f"{show(low)} to {show(high)}"

    @property
    def relative(self) -> float | None:
        """Ours over the published figure, or over the nearer end of its range; 1 inside it."""
        if self.ours is None or self.claim.published is None:
            return None
        low, high = self.claim.published
        return self.ours / min(max(self.ours, low), high)


def answers(claims: Iterable[Claim], shelf: Shelf) -> tuple[Answer, ...]:
    """Each claim with what the shelf has, in the claims' order."""
    return tuple(_answer(claim, shelf) for claim in claims)


def _answer(claim: Claim, shelf: Shelf) -> Answer:
    several = "*" in claim.operator
    cases: list[Value] = []
    newest: Record | None = None
    for operator in (name for name in shelf.operators if claim.operator and fnmatchcase(name, claim.operator)):
        record, found = _newest(claim, shelf, operator)
        if record is not None:
            newest = record
            cases += [(operator, _mean([value for _, value in found]))] if several else found
    if newest is None:
        return Answer(claim, "not measured", None, (), "", _command(claim))
    command = _command(claim) if several or claim.is_training else _again(claim, newest.header.command)
    gpu = newest.header.environment.device_name
    ours = _mean([value for _, value in cases])
    return Answer(claim, _verdict(claim, ours), ours, tuple(cases), gpu, command)


def _newest(claim: Claim, shelf: Shelf, operator: str) -> tuple[Record | None, list[Value]]:
    """The newest record with an answer: one that was narrowed to other implementations does not hide it."""
    if claim.is_training:
        return joined(claim, shelf)
    for record in shelf.newest(operator):
        found = values(claim, record)
        if found:
            return record, found
    return None, []


def _mean(found: list[float]) -> float:
    """Geometric, or with a value of 0 (no time in launches) the arithmetic one."""
    return geometric_mean(found) if min(found) > 0 else sum(found) / len(found)


def _command(claim: Claim) -> str:
    if not claim.operator:
        return ""
    only = "" if "*" in claim.operator else "".join(f"--only {operator} " for operator in claim.operators)
    return _measuring(claim, f"groundspeed run {only}--tier {claim.tier}")


def _again(claim: Claim, recorded: str) -> str:
    """The record's own command, each choice said once: there are records whose command repeats one."""
    words: list[str] = []
    for word in shlex.split(recorded):
        if words[-1:] == ["--only"] and ("--only", word) in pairwise(words):
            words.pop()
        else:
            words.append(word)
    return _measuring(claim, shlex.join(words)) if words else _command(claim)


def _measuring(claim: Claim, command: str) -> str:
    """With ``--energy`` where the claim is about it: it takes a second a case, and a run must be asked for it."""
    missing = claim.quantity == "energy" and "--energy" not in command
    return f"{command} --energy" if missing else command


def _verdict(claim: Claim, ours: float) -> Verdict:
    if claim.published is None:
        return "measured"
    low, high = claim.published[0] * (1 - ROUNDING), claim.published[1] * (1 + ROUNDING)
    better = QUANTITIES[claim.quantity].better
    if (better == "higher" and ours > high) or (better == "lower" and ours < low):
        return "exceeded"
    return "reproduced" if low <= ours <= high else "not reproduced"
