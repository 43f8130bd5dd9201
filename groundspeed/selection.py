"""Which operators, implementations, dtypes and cases a run is narrowed to, and how they are measured."""

from __future__ import annotations

import difflib
import fnmatch
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from groundspeed.errors import UserError
from groundspeed.operator import DTYPES, TIERS, Case, Operator
from groundspeed.tree import Implementation, SpecError, Tree

VARIABLES = {
    "operators": "GROUNDSPEED_OPERATORS",
    "implementations": "GROUNDSPEED_IMPLEMENTATIONS",
    "dtypes": "GROUNDSPEED_DTYPES",
    "tier": "GROUNDSPEED_TIER",
    "shapes": "GROUNDSPEED_SHAPES",
    "timer": "GROUNDSPEED_TIMER",
    "energy": "GROUNDSPEED_ENERGY",
}
FIRST_CALL = "GROUNDSPEED_FIRST_CALL"
FIRST_CALLS = ("cold",)  # how first calls are measured, beside that of the sweep's own warm process
TIMERS = ("cupti", "events", "graph")  # on a GPU; a CPU has its clock


@dataclass(frozen=True)
class Selection:
    """Empty means all. ``implementations`` and ``shapes`` hold shell patterns: ``triton_*``, ``M=4096,*``.

    timer
        One of TIMERS, or empty for the device's usual one.
    energy
        Whether the energy of every call is measured; without it the full tier does so in one case an operator.
    """

    operators: tuple[str, ...] = ()
    implementations: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    tier: str = "full"
    shapes: tuple[str, ...] = ()
    timer: str = ""
    energy: bool = False

    def __post_init__(self) -> None:
        if self.tier not in TIERS:
            raise UserError(f"unknown tier {self.tier!r}: expected {', '.join(TIERS)}{_hint(self.tier, TIERS)}")
        if self.timer and self.timer not in TIMERS:
            raise UserError(f"unknown timer {self.timer!r}: expected {', '.join(TIMERS)}{_hint(self.timer, TIMERS)}")
        for dtype in self.dtypes:
            if dtype not in DTYPES:
                raise UserError(f"unknown dtype {dtype!r}: expected {', '.join(DTYPES)}{_hint(dtype, DTYPES)}")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ, tier: str = "full") -> Selection:
        """Read the GROUNDSPEED_* variables: asv hands its setup neither ``--bench`` nor ``--quick``.

        Lists are separated by commas, shapes (which hold commas) by semicolons.
        """
        return cls(
            operators=_split(environment.get(VARIABLES["operators"], "")),
            implementations=_split(environment.get(VARIABLES["implementations"], "")),
            dtypes=_split(environment.get(VARIABLES["dtypes"], "")),
            tier=environment.get(VARIABLES["tier"], "") or tier,
            shapes=_split(environment.get(VARIABLES["shapes"], ""), ";"),
            timer=chosen_timer(environment),
            energy=chosen_energy(environment),
        )

    def to_environment(self) -> dict[str, str]:
        """The variables that say the same."""
        return {
            VARIABLES["operators"]: ",".join(self.operators),
            VARIABLES["implementations"]: ",".join(self.implementations),
            VARIABLES["dtypes"]: ",".join(self.dtypes),
            VARIABLES["tier"]: self.tier,
            VARIABLES["shapes"]: ";".join(self.shapes),
            VARIABLES["timer"]: self.timer,
            VARIABLES["energy"]: "1" if self.energy else "",
        }

    def check(self, tree: Tree) -> None:
        """Raise UserError when a name matches nothing in the tree: a typo must not measure nothing and look fine."""
        known = tree.operators()
        for operator in self.operators:
            if operator not in known:
                hint = _hint(operator, known)
                raise UserError(f"unknown operator {operator!r}: there are {', '.join(known)}{hint}")
        names = sorted({i.name for operator in self.chosen_operators(tree) for i in tree.implementations(operator)})
        for pattern in self.implementations:
            if not fnmatch.filter(names, pattern):
                raise UserError(f"no implementation matches {pattern!r}{_hint(pattern, names)}; type: groundspeed list")
        labels = {label for operator in self.chosen_operators(tree) for label in _shape_labels(tree, operator)}
        for pattern in self.shapes:
            if not fnmatch.filter(labels, pattern):
                raise UserError(f"no bench shape matches {pattern!r}; type: groundspeed list OPERATOR")

    def chosen_operators(self, tree: Tree) -> tuple[str, ...]:
        return tuple(name for name in tree.operators() if not self.operators or name in self.operators)

    def includes(self, implementation: Implementation) -> bool:
        return not self.implementations or any(fnmatch.fnmatch(implementation.name, p) for p in self.implementations)

    def cases(self, operator: Operator) -> tuple[Case, ...]:
        """The bench cases of the tier that the dtypes and shapes let through, in the spec's order."""
        return tuple(case for case in operator.tier_cases(self.tier) if self.excludes(case) is None)

    def excludes(self, case: Case) -> str | None:
        """Why a case of the tier is left out, or None."""
        if self.dtypes and case.dtype not in self.dtypes:
            return f"dtype {case.dtype} not selected"
        if self.shapes and not any(fnmatch.fnmatch(case.shape_label, pattern) for pattern in self.shapes):
            return "shape not selected"
        return None


def chosen_timer(environment: Mapping[str, str] = os.environ) -> str:
    """The timer that GROUNDSPEED_TIMER asks for; empty when it asks for none. Raises UserError for an unknown one."""
    return Selection(timer=environment.get(VARIABLES["timer"], "")).timer


def chosen_energy(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether GROUNDSPEED_ENERGY asks for the energy of a call. Raises UserError for anything but 1, 0 or nothing."""
    value = environment.get(VARIABLES["energy"], "")
    if value not in ("", "0", "1"):
        raise UserError(f"{VARIABLES['energy']} is {value!r}, expected 1, or 0 or nothing")
    return value == "1"


def chosen_first_call(environment: Mapping[str, str] = os.environ) -> str:
    """What GROUNDSPEED_FIRST_CALL asks for, one of FIRST_CALLS or nothing. Raises UserError for anything else."""
    value = environment.get(FIRST_CALL, "")
    if value not in ("", *FIRST_CALLS):
        raise UserError(f"{FIRST_CALL} is {value!r}, expected {' or '.join(FIRST_CALLS)}, or nothing")
    return value


def _shape_labels(tree: Tree, operator: str) -> set[str]:
    try:
        return {case.shape_label for case in tree.spec(operator).bench_cases}
    except SpecError:
        return set()  # reported by name when its turn comes; the others are measured


def _split(text: str, separator: str = ",") -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(separator) if part.strip())


def _hint(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
