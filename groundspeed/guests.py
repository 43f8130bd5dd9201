"""Operators and implementations that other packages bring: folders like ``impls/``, named by entry points.

A package says where its folder lies, as an importable name,

    [project.entry-points."groundspeed.impls"]
    mine = "my_package.impls"

and what is in it stands beside the project's own: new operators, and implementations of the project's. Nothing of the
package is imported to find that out. The gate, the bisection and asv judge commits of one repository, and leave guests
out.
"""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
from pathlib import Path

from groundspeed.errors import UserError
from groundspeed.tree import Tree

GROUP = "groundspeed.impls"


def tree_with_guests(root: Path) -> Tree:
    """The tree under a folder, with every installed package's beside it. Raises UserError for one that is not there."""
    return Tree(root, guests=guests())


def guests() -> tuple[Tree, ...]:
    """The trees that installed packages bring, by their entry points' names."""
    points = sorted(importlib.metadata.entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    return tuple(Tree(_folder(point)) for point in points)


def _folder(point: importlib.metadata.EntryPoint) -> Path:
    top, *rest = point.value.split(".")
    spec = importlib.machinery.PathFinder.find_spec(top)  # of a name without a dot, it imports nothing
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        folder = Path(place).joinpath(*rest)
        if folder.is_dir():
            return folder
    package = point.dist.name if point.dist is not None else "an installed package"
    raise UserError(
        f"{package}: its entry point {GROUP}: {point.name} = {point.value} names no folder of a package on the path; "
        f"type: pip uninstall {package}"
    )
