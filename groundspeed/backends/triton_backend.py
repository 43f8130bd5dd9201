"""Triton kernels. On a machine without a GPU they are checked in Triton's interpreter and never timed."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from groundspeed.backends.base import Opened, prepare_of, torch_outputs, unsupported_of
from groundspeed.backends.triton_kernels import Kernel, files_of, kernels_of, kernels_of_tree
from groundspeed.backends.triton_launches import Launch, choices_of, noted, resources_of
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
    files = files_of(tree, implementation)

    def kernels() -> tuple[Kernel, ...]:
        return kernels_of(tree, files)  # each time anew: some import a helper as late as in prepare

    seen = _Seen(kernels)
    return Opened(
        prepare=prepare_of(module),
        unsupported=unsupported_of(module),
        to_torch=torch_outputs,
        own_kernels=lambda: frozenset(kernel.name for kernel in kernels_of_tree(tree)),
        watch=seen.watch,
        resources=lambda: resources_of(seen.launches),
        tuned=lambda: choices_of(seen.launches),
        tuning=lambda: {place: _learnt(tuner) for place, tuner in _tuners(kernels()).items()},
        adopt_tuning=lambda learnt: _adopt(_tuners(kernels()), learnt),
    )


class _Seen:
    """What an implementation launched while it was last watched."""

    def __init__(self, kernels: Callable[[], Sequence[Kernel]]) -> None:
        self._kernels = kernels
        self.launches: Sequence[Launch] = ()

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        with noted(self._kernels()) as self.launches:
            yield


def _one_configuration(tree: Tree) -> None:
    """Leave each autotuner one configuration: the interpreter checks arithmetic, it has nothing to tune."""
    for tuner in _tuners(kernels_of_tree(tree)).values():
        tuner.configs = tuner.configs[:1]


def _tuners(kernels: Sequence[Kernel]) -> dict[str, Any]:
    """The autotuners by the place of the kernel that each is around."""
    return {kernel.place: kernel.tuner for kernel in kernels if kernel.tuner is not None}


def _learnt(tuner: Any) -> list[list[Any]]:
    """Pairs of a key and the configuration chosen for it, in words. A key that JSON would change is left out."""
    return [[list(key), str(chosen)] for key, chosen in tuner.cache.items() if all(map(_is_plain, key))]


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _adopt(tuners: Mapping[str, Any], learnt: Mapping[str, Any]) -> None:
    for place, tuner in tuners.items():
        known = {str(configuration): configuration for configuration in tuner.configs}
        for key, chosen in learnt.get(place, ()):
            if chosen in known:
                tuner.cache.setdefault(tuple(key), known[chosen])
