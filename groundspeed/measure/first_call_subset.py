"""Which implementations' first calls are measured in fresh processes: ``first_call_subset`` in ``[tool.groundspeed]``.

It takes two processes each, the first of which compiles everything there is to compile: too much for all of them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from groundspeed.errors import UserError
from groundspeed.operator import Case

KEY = "first_call_subset"
USUAL = ("softmax/*", "matmul/*", "relu/*")


@dataclass(frozen=True)
class Wanted:
    """Shell patterns: of an operator, of its implementations, and of the label of the one case they are called on."""

    operator: str
    implementation: str
    case: str = "*"

    def __str__(self) -> str:
        return f"{self.operator}/{self.implementation}" + (f" {self.case}" if self.case != "*" else "")


def read_subset(root: Path) -> tuple[Wanted, ...]:
    """What the project's pyproject.toml names, else USUAL. Raises UserError for what is no list of such patterns."""
    path = root / "pyproject.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: {error}") from error
    named = table.get("tool", {}).get("groundspeed", {}).get(KEY, list(USUAL))
    where = f"{path} [tool.groundspeed]: {KEY}"
    if not isinstance(named, list):
        raise UserError(f"{where} = {named!r}: expected a list of patterns like {USUAL[0]!r}")
    return tuple(_wanted(text, where) for text in named)


def chosen_case(subset: Iterable[Wanted], operator: str, implementation: str, cases: Sequence[Case]) -> Case | None:
    """The one case that an implementation's first call is measured on: the first that fits; None when none does."""
    for wanted in subset:
        if fnmatchcase(operator, wanted.operator) and fnmatchcase(implementation, wanted.implementation):
            fitting = (case for case in cases if fnmatchcase(case.label, wanted.case))
            found = next(fitting, None)
            if found is not None:
                return found
    return None


def _wanted(text: object, where: str) -> Wanted:
    name, _, case = str(text).strip().partition(" ")
    operator, slash, implementation = name.partition("/")
    if not isinstance(text, str) or not operator or not slash or not implementation:
        example = "'softmax/triton_*' or 'softmax/* float32 M=4096,*'"
        raise UserError(f"{where}: {text!r}: expected OPERATOR/IMPLEMENTATION and perhaps a case, like {example}")
    return Wanted(operator, implementation, case.strip() or "*")
