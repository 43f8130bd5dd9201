"""What a worker imports before its job, and what torch.compile finds out once a process.

A process that forks workers (groundspeed.measure.nursery) does this once for all of them. So nothing here touches a
device, makes a thread or depends on a job: a child of a process that has done any of that is broken.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Literal

Imports = Literal["work", "front end", "compiler"]
"""How far imports go: what every job needs; torch.compile's front end too; and Inductor as well, behind it."""

_WORK = (
    "groundspeed.measure.attempt",
    "groundspeed.measure.case",
    "groundspeed.measure.device",
    "groundspeed.measure.opening",
    "groundspeed.measure.sides",
)
_FRONT_END = "torch._dynamo"
_COMPILER = "torch._inductor.compile_fx"
_CPU_COMPILER = "torch.utils.cpp_extension"  # where torch is built for CUDA, its import initialises CUDA
# torch keeps the answers for the life of the process. Torch's internals, by name: one that a version of torch lacks is
# one that it does not need.
_KEYS = ("torch_key", "triton_key")


def work() -> None:
    """Import what every job needs."""
    for name in _WORK:
        importlib.import_module(name)


def front_end() -> None:
    """Import what torch.compile reads functions with.

    A job without torch.compile saves the 4.5 s that this took on a host with an H200 (torch 2.11).
    """
    importlib.import_module(_FRONT_END)


def compiler() -> None:
    """Import torch.compile whole; hash the compiler's sources, and without CUDA ask what vectors the CPU has.

    Of 2.5 s that the first torch.compile of a process took here with its cache full, 0.8 s were imports, 0.5 s hashes
    and 0.9 s that question (torch 2.13, 2 cores of an AMD EPYC).
    """
    import torch

    front_end()
    importlib.import_module(_COMPILER)
    codecache = importlib.import_module("torch._inductor.codecache")
    asked = [getattr(codecache, name, None) for name in _KEYS]
    if torch.version.cuda is None:
        importlib.import_module(_CPU_COMPILER)
        asked.append(getattr(importlib.import_module("torch._inductor.cpu_vec_isa"), "valid_vec_isa_list", None))
    _ask(function for function in asked if function is not None)


def compiling_processes(count: int | None = None) -> None:
    """Start the processes in which Inductor compiles Triton's kernels, and do not wait for them.

    ``count`` is how many; as many as Inductor would by default.

    Inductor starts them at its first compilation, which they are too late for: on a CPU they were ready 2.5 to 5.8 s
    after they were started, and until then it compiles in threads of this process. On an H200 the twenty candidates of
    a run's first product took 8.0 s, those of its second 5.5 s. Never in a process that others are forked from: it
    makes a thread.
    """
    module = importlib.import_module("torch._inductor.async_compile")
    if count is not None:
        setattr(importlib.import_module("torch._inductor.config"), "compile_threads", count)  # noqa: B010
    module.AsyncCompile.wakeup()


def _ask(functions: Iterable[Callable[[], object]]) -> None:
    for function in functions:
        function()
