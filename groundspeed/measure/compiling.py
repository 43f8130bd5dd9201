"""Who compiled, or tuned, while samples were taken: counts before and after them, read where compilers keep them.

Nothing of this is on the way of a call. What cannot be told from such counts is said in docs/measuring.md.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from groundspeed.backends.triton_kernels import Kernel, files_of, kernels_of
from groundspeed.measure import compilations
from groundspeed.measure.contender import Contender
from groundspeed.tree import Implementation, Tree

Tally = Mapping[str, Mapping[str, int]]
"""By compiler and contender, how much it has compiled: of a compiler that counts for the process, as much for each."""

_JAX_COMPILES = "/jax/core/compile/backend_compile"  # the beginning of an event's name, of jax.monitoring
_counted = {"JAX": 0, "CuPy": 0}


def tally(contenders: Iterable[Contender]) -> Tally:
    """What has been compiled up to now."""
    asked = tuple(contenders)
    _listen_to_jax()
    _count_nvrtc()
    whole = {"torch.compile": compilations.count(), **_counted}
    found = {compiler: dict.fromkeys((one.name for one in asked), count) for compiler, count in whole.items()}
    if "triton" in sys.modules:
        found["Triton"] = {one.name: sum(map(variants, _kernels_of(one))) for one in asked}
    return found


def since(before: Tally, now: Tally) -> dict[str, str]:
    """Contenders that may have compiled in between, and what of; several where it is not known which of them did."""
    return {
        name: f"{compiler} compiled inside the timed region"
        for compiler, counts in now.items()
        for name, count in counts.items()
        if count != before.get(compiler, {}).get(name, 0)
    }


def variants(kernel: Kernel) -> int:
    """How many variants of a Triton kernel are compiled on all devices, and how many keys its autotuner has tuned."""
    compiled = [len(each[0]) for link in kernel.links for each in getattr(link, "device_caches", {}).values()]
    tuned = 0 if kernel.tuner is None else len(kernel.tuner.cache)
    return sum(compiled) + tuned


def _kernels_of(contender: Contender) -> tuple[Kernel, ...]:
    return kernels_of(contender.tree, _files_of(contender.tree, contender.implementation))


@functools.cache
def _files_of(tree: Tree, implementation: Implementation) -> frozenset[Path]:
    return files_of(tree, implementation)


@functools.cache
def _listens(module: str) -> bool:
    monitoring: Any = importlib.import_module(module)

    def heard(event: str, seconds: float, **about: object) -> None:
        _counted["JAX"] += event.startswith(_JAX_COMPILES)

    monitoring.register_event_duration_secs_listener(heard)
    return True


def _listen_to_jax() -> None:
    """JAX tells whoever listens how long each compilation took."""
    if "jax" in sys.modules:
        _listens("jax.monitoring")


def _count_nvrtc() -> None:
    """CuPy has no such thing: its own class for a program of NVRTC gets a method that counts. Private, by name."""
    program = getattr(sys.modules.get("cupy.cuda.compiler"), "_NVRTCProgram", None)
    if program is not None and not hasattr(program.compile, "__wrapped__"):
        program.compile = _counting(program.compile)


def _counting(compile_: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(compile_)
    def counted(*arguments: Any, **named: Any) -> Any:
        _counted["CuPy"] += 1
        return compile_(*arguments, **named)

    return counted
