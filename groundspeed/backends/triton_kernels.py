"""The Triton kernels in the modules of a tree, with the autotuners around them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from groundspeed.digest import closure
from groundspeed.tree import Implementation, Tree

_DEEPEST = 8  # decorators around one function


@dataclass(frozen=True)
class Kernel:
    """A kernel that a module has by a name.

    place
        That module and name, within the tree: ``_triton.linear.linear_kernel``. Equal code has equal places, on
        whatever side of a comparison.
    links
        What its decorators made of it (autotune, heuristics, jit), outermost first, and last the function as written.
    """

    place: str
    links: tuple[Any, ...]

    @property
    def name(self) -> str:
        return str(self.links[-1].__name__)

    @property
    def tuner(self) -> Any | None:
        """The autotuner around it, or None."""
        return next((link for link in self.links if hasattr(link, "configs")), None)


def kernels_of_tree(tree: Tree) -> tuple[Kernel, ...]:
    """All that are loaded."""
    return _kernels(tree, _modules(tree))


def kernels_of(tree: Tree, files: frozenset[Path]) -> tuple[Kernel, ...]:
    """Those of some files that are loaded."""
    return _kernels(tree, [module for module in _modules(tree) if _file_of(module) in files])


def files_of(tree: Tree, implementation: Implementation) -> frozenset[Path]:
    """The implementation's own and those of its tree that they import, directly or not."""
    return frozenset[Path]().union(*(closure(tree.root, file) for file in implementation.files))


def _modules(tree: Tree) -> list[ModuleType]:
    prefix = tree.package + "."
    return [module for name, module in list(sys.modules.items()) if name.startswith(prefix) and module is not None]


def _file_of(module: ModuleType) -> Path | None:
    """A folder's package has no file of its own (``Tree.load`` makes it): what it runs is its ``__init__.py``."""
    if getattr(module, "__file__", None):
        return Path(str(module.__file__)).resolve()
    folder = next(iter(getattr(module, "__path__", ())), None)
    return None if folder is None else (Path(folder) / "__init__.py").resolve()


def _kernels(tree: Tree, modules: Iterable[ModuleType]) -> tuple[Kernel, ...]:
    """In the order of the modules' names, each once: a helper's kernel is a name of those who import it too."""
    found: dict[int, Kernel] = {}
    for module in sorted(modules, key=lambda module: module.__name__):
        within = module.__name__.removeprefix(tree.package + ".")
        for name, value in list(vars(module).items()):
            if _can_be_launched(value):
                kernel = Kernel(f"{within}.{name}", _links(value))
                if not _is_tritons_own(kernel):
                    found.setdefault(id(value), kernel)
    return tuple(found.values())


def _can_be_launched(value: object) -> bool:
    """Whether a decorator of Triton made it; a Config is no such thing, nor is a function of constants."""
    return type(value).__module__.startswith("triton.runtime") and hasattr(value, "fn") and hasattr(value, "run")


def _links(kernel: Any) -> tuple[Any, ...]:
    links: list[Any] = []
    while kernel is not None and len(links) < _DEEPEST:
        links.append(kernel)
        kernel = getattr(kernel, "fn", None)
    return tuple(links)


def _is_tritons_own(kernel: Kernel) -> bool:
    """Whether it is of Triton's library, ``tl.softmax`` say: whoever imports that by name has not written it."""
    return str(kernel.links[-1].__module__).partition(".")[0] == "triton"
