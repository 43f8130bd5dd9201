"""The checkout a command works on, and what is said of one operator or implementation of it on the command line."""

from __future__ import annotations

import difflib
import fnmatch
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from groundspeed.errors import UserError
from groundspeed.guests import tree_with_guests
from groundspeed.tree import Tree

MARKS = ("asv.conf.json", "impls")


@dataclass(frozen=True)
class Project:
    """A folder with ``asv.conf.json`` and ``impls/``; results lie in ``results/`` unless told otherwise."""

    root: Path

    @property
    def results(self) -> Path:
        return self.root / "results"

    def tree(self) -> Tree:
        return tree_with_guests(self.root / "impls")


@dataclass(frozen=True)
class Target:
    """What ``OPERATOR`` or ``OPERATOR/IMPLEMENTATION`` names; the implementation may be a shell pattern."""

    operator: str
    implementation: str | None = None

    def __str__(self) -> str:
        return self.operator if self.implementation is None else f"{self.operator}/{self.implementation}"


def find_project(folder: Path | None) -> Project:
    """The folder given, or the nearest one at or above the current folder that is a checkout."""
    if folder is not None:
        if not _is_project(folder):
            raise UserError(f"--project {folder}: no checkout of groundspeed: expected {' and '.join(MARKS)} in it")
        return Project(folder.resolve())
    here = Path.cwd()
    for candidate in (here, *here.parents):
        if _is_project(candidate):
            return Project(candidate)
    raise UserError(f"{here} lies in no checkout ({' and '.join(MARKS)}): go to one, or pass --project DIR")


def parse_target(text: str, tree: Tree) -> Target:
    """Raises UserError, with the nearest names, for what is not in the tree."""
    operator, _, implementation = text.partition("/")
    known = tree.operators()
    if operator not in known and "," in text:
        raise UserError(f"{text!r} is several: one --only each: {' '.join(f'--only {one}' for one in text.split(','))}")
    if operator not in known:
        raise UserError(f"unknown operator {operator!r}{near(operator, known)}; type: groundspeed list")
    names = [one.name for one in tree.implementations(operator)]
    if implementation and not fnmatch.filter(names, implementation):
        raise UserError(
            f"{operator}: no implementation matches {implementation!r}{near(implementation, names)}; "
            f"type: groundspeed list {operator}"
        )
    return Target(operator, implementation or None)


def parse_targets(texts: Iterable[str], tree: Tree) -> list[Target]:
    """Each text as parse_target reads it, or, with a pattern for the operator, one target for each operator it fits.

    Raises UserError, with the nearest names, for what is not in the tree.
    """
    return [target for text in texts for target in _fitting(text, tree)]


def _fitting(text: str, tree: Tree) -> list[Target]:
    pattern, _, implementation = text.partition("/")
    if not set(pattern) & set("*?["):
        return [parse_target(text, tree)]
    operators = fnmatch.filter(tree.operators(), pattern)
    wanted = implementation or "*"
    fitting = [name for name in operators if fnmatch.filter((one.name for one in tree.implementations(name)), wanted)]
    if not fitting:
        raise UserError(f"nothing matches {text!r}; type: groundspeed list")
    return [Target(name, implementation or None) for name in fitting]


def command() -> str:
    """How groundspeed is called from here: by its name, or by its path in an environment that is not activated."""
    script = Path(sys.executable).parent / "groundspeed"
    if shutil.which("groundspeed") or not script.is_file():
        return "groundspeed" if shutil.which("groundspeed") else "python -m groundspeed"
    return str(script.relative_to(Path.cwd())) if script.is_relative_to(Path.cwd()) else str(script)


def shown(path: Path) -> str:
    """A path as it is typed here: from the current folder where it lies below it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def near(word: str, known: Iterable[str]) -> str:
    """``: did you mean 'softmax'?``, or the names there are when none is near."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=3)
    if close:
        return f": did you mean {' or '.join(map(repr, close))}?"
    return f": there are {', '.join(names)}" if names else ": there are none"


def _is_project(folder: Path) -> bool:
    return (folder / MARKS[0]).is_file() and (folder / MARKS[1]).is_dir()
