"""What asv asks for: every benchmark's parameters and version, fixed once for a whole ``asv run``.

The lists come from today's specs and the names of the working tree's files, so they are the same on every machine and
for every commit. asv addresses a combination by its index into them, and its worker processes build them anew; were
they built from the files each time, an implementation added while ``asv run A..B`` works through old commits would
shift every later answer by one place. So the environment writes the lists when it is created and the suite reads
them: see VARIABLE.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from groundspeed.operator import Case
from groundspeed.tree import SpecError, Tree

VARIABLE = "GROUNDSPEED_INVENTORY"
PARAMETERS = ("implementation", "dtype", "shape")

# The meaning of a number asv keeps: raise it when the way of measuring changes what the numbers say, and asv keeps
# the series before and after apart.
SWEEP_VERSION = "1"


class Entry(msgspec.Struct, frozen=True):
    """The benchmarks of one operator: the values of PARAMETERS, and what asv compares to tell series apart."""

    operator: str
    implementations: list[str]
    dtypes: list[str]
    shapes: list[str]
    version: str

    @property
    def parameters(self) -> list[list[str]]:
        return [self.implementations, self.dtypes, self.shapes]


class Inventory(msgspec.Struct, frozen=True):
    """Every operator's entry, and one line for each operator whose spec cannot be used."""

    entries: list[Entry]
    broken: list[str]


def take(tree: Tree) -> Inventory:
    """Read the specs and list the files of a tree. A broken spec costs its operator only."""
    entries: list[Entry] = []
    broken: list[str] = []
    for operator in tree.operators():
        try:
            entries.append(_entry(tree, operator))
        except SpecError as error:
            broken.append(str(error))
    return Inventory(entries, broken)


def current(root: Path) -> Inventory:
    """The inventory this ``asv run`` was fixed to, or, outside one, that of the project's files as they are."""
    path = os.environ.get(VARIABLE)
    return read(Path(path)) if path else take(Tree(root / "impls"))


def read(path: Path) -> Inventory:
    return msgspec.json.decode(path.read_bytes(), type=Inventory)


def write(path: Path, inventory: Inventory) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(inventory))


def _entry(tree: Tree, operator: str) -> Entry:
    spec = tree.spec(operator)
    shapes = [Case.of("", shape).shape_label for shape in spec.bench_shapes]
    return Entry(
        operator=operator,
        implementations=[implementation.name for implementation in tree.implementations(operator)],
        dtypes=list(spec.dtypes),
        shapes=list(dict.fromkeys(shapes)),
        version=f"{tree.case_digest(operator, Case('', ()))}-{SWEEP_VERSION}",
    )
