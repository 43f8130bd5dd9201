"""Triton kernels. On a machine without a GPU they are checked in Triton's interpreter and never timed."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from groundspeed.backends.base import Opened, prepare_of, torch_outputs, unsupported_of
from groundspeed.records import KernelResources
from groundspeed.tree import Implementation, Tree


def absent(device: str) -> str | None:
    if importlib.util.find_spec("triton") is None:
        return "triton is not installed: pip install 'groundspeed[cuda]'"
    return None if device == "cuda" else "Triton needs a GPU: its interpreter is checked, never timed"


def interpreting() -> bool:
    """Whether this process runs Triton's interpreter."""
    return os.environ.get("TRITON_INTERPRET", "0") not in ("", "0")


def open_implementation(tree: Tree, implementation: Implementation) -> Opened:
    module = tree.load(f"{implementation.operator}.{implementation.name}")
    if interpreting():
        _one_configuration(tree)
    return Opened(
        prepare=prepare_of(module),
        unsupported=unsupported_of(module),
        to_torch=torch_outputs,
        own_kernels=lambda: frozenset(_kernel_names(tree)),
        resources=lambda: _resources(module),
        tuned=lambda: _tuned(module),
        tuning=lambda: {name: _learnt(tuner) for name, tuner in _tuners(module).items()},
        adopt_tuning=lambda learnt: _adopt(module, learnt),
    )


def _modules(tree: Tree) -> list[ModuleType]:
    import sys

    prefix = tree.package + "."
    return [module for name, module in list(sys.modules.items()) if name.startswith(prefix) and module is not None]


def _chain(kernel: Any) -> list[Any]:
    """A decorated kernel and what its decorators (autotune, heuristics) wrap, outermost first."""
    links: list[Any] = []
    while kernel is not None and len(links) < 8:
        links.append(kernel)
        kernel = getattr(kernel, "fn", None)
    return links


def _kernels(module: ModuleType) -> list[list[Any]]:
    """The Triton kernels among a module's globals, as chains; plain Python functions do not count."""
    found = []
    for value in list(vars(module).values()):
        if type(value).__module__.startswith("triton.runtime") and hasattr(value, "fn"):  # a Config has none
            found.append(_chain(value))
    return found


def _kernel_names(tree: Tree) -> set[str]:
    """Names of all kernels of the tree that are loaded: a shared helper's kernel counts as the implementation's own."""
    return {chain[-1].__name__ for module in _modules(tree) for chain in _kernels(module)}


def _one_configuration(tree: Tree) -> None:
    """Leave each autotuner one configuration: the interpreter checks arithmetic, it has nothing to tune."""
    for module in _modules(tree):
        for chain in _kernels(module):
            for link in chain:
                if len(getattr(link, "configs", ())) > 1:
                    link.configs = link.configs[:1]


def _tuners(module: ModuleType) -> dict[str, Any]:
    """The autotuners of a module by the name of the kernel that each wraps."""
    return {chain[-1].__name__: link for chain in _kernels(module) for link in chain if hasattr(link, "configs")}


def _learnt(tuner: Any) -> list[list[Any]]:
    """Pairs of a key and the configuration chosen for it, in words. A key that JSON would change is left out."""
    return [[list(key), str(chosen)] for key, chosen in tuner.cache.items() if all(map(_is_plain, key))]


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _adopt(module: ModuleType, learnt: Mapping[str, Any]) -> None:
    for name, tuner in _tuners(module).items():
        known = {str(configuration): configuration for configuration in tuner.configs}
        for key, chosen in learnt.get(name, ()):
            if chosen in known:
                tuner.cache.setdefault(tuple(key), known[chosen])


def _tuned(module: ModuleType) -> str:
    chosen = [str(link.best_config) for chain in _kernels(module) for link in chain if hasattr(link, "best_config")]
    return "; ".join(sorted(set(chosen)))


def _resources(module: ModuleType) -> tuple[KernelResources, ...]:
    found: dict[str, KernelResources] = {}
    for chain in _kernels(module):
        for compiled in _compiled(chain[-2] if len(chain) > 1 else chain[-1]):
            registers = getattr(compiled, "n_regs", None)
            if registers is None:
                continue  # compiled while tuning and never loaded
            found[compiled.name] = KernelResources(
                name=compiled.name,
                registers=int(registers),
                shared_bytes=int(getattr(compiled.metadata, "shared", 0)),
                spill_bytes=4 * int(getattr(compiled, "n_spills", 0) or 0),
            )
    return tuple(found.values())


def _compiled(kernel: Any) -> list[Any]:
    """Compiled variants of a JITFunction, newest last. Triton keeps them per device."""
    caches = getattr(kernel, "device_caches", {})
    return [variant for entry in caches.values() for variant in entry[0].values()]
