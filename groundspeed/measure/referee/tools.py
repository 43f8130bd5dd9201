"""The harness's own tools: clocks, synchronisation, the timers, and what the referee judges with.

Whoever replaces one is seen, and the real one is put back. What is watched is found in the harness's own modules, and
not on a list: all that they define, and of Python's, torch's and the clock's what their code mentions. The others' is
kept as it was when this module was imported, the harness's own as it was when ``watch`` was called; both are before any
implementation's file is imported.
"""

from __future__ import annotations

import builtins
import sys
import time
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch.autograd import profiler

from groundspeed.measure.referee.watched import (
    Attributes,
    Functions,
    Watched,
    functions_in,
    named,
    names_in,
    of_class,
    of_module,
)

_OWN = "groundspeed."
# Those whose code calls clocks, streams and tensors between the start and the end of a time, or of a judgement.
_USERS = tuple(f"{_OWN}measure.{name}" for name in ("timers", "referee", "calls", "sampling"))
_KINETO = ("_KinetoEvent", "_ProfilerResult")  # what CUPTI's record is read from; private, and may be gone one day
_WHOLE: tuple[Any, ...] = (
    torch.cuda.Event,
    torch.cuda.Stream,
    torch.cuda.CUDAGraph,
    profiler.profile,
    *(getattr(torch._C._autograd, name) for name in _KINETO if hasattr(torch._C._autograd, name)),
)
_MENTIONED: tuple[Any, ...] = (builtins, time, torch, torch.Tensor, torch.cuda, torch.autograd, profiler)
_KNOWN = {owner: dict(vars(owner)) for owner in (*_MENTIONED, torch._C)}
# All of them: whoever replaces one that nobody reads today is up to nothing good.
_CLOCKS = frozenset(name for name in vars(time) if not name.startswith("_"))
_synchronize = torch.cuda.synchronize


def synchronize(device: str) -> None:
    """Wait for all work on the device, on every stream. Nothing to wait for on a CPU."""
    if device == "cuda":
        _synchronize()


def watch() -> None:
    """Look at every module of the harness that is loaded now. What is new since the last time is watched too."""
    _watched[:] = _snapshot()


def replaced() -> tuple[str, ...]:
    """Names of tools that are not what they were."""
    return tuple(name for one in _watched if not one.untouched() for name in one.changed())


def put_back() -> None:
    """Make every tool what it was."""
    for one in _watched:
        if not one.untouched():
            one.put_back()


def watched_names() -> frozenset[str]:
    """Whose change ``replaced`` would tell."""
    return frozenset(
        f"{one.label}.{name}" for one in _watched if isinstance(one, Attributes) for name in (*one.values, *one.absent)
    )


def _snapshot() -> list[Watched]:
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(_OWN) and module is not None]
    mentioned = names_in(_functions(module for module in modules if module.__name__.startswith(_USERS)))
    others = [*(named(owner, _KNOWN[owner], mentioned | _CLOCKS) for owner in _MENTIONED), *map(of_class, _WHOLE)]
    theirs = list(functions_in(value for one in others for value in one.values.values()))
    below = named(torch._C, _KNOWN[torch._C], names_in(theirs))  # what torch's functions of these names end in
    hidden = frozenset(vars(builtins)) & mentioned
    own = [one for module in modules for one in of_module(module, hidden)]
    return [*others, below, *own, Functions([*theirs, *_functions(modules)])]


def _functions(modules: Iterable[ModuleType]) -> Iterator[FunctionType]:
    """The harness's functions that these modules have; one that several import comes several times."""
    for module in modules:
        for one in of_module(module):
            for function in functions_in(one.values.values()):
                if str(function.__module__).startswith(_OWN):
                    yield function


_watched: list[Watched] = []
watch()
