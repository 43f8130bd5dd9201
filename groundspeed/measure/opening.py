"""Load an operator's implementations in a worker; one that cannot be loaded is its fault and stops no other."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence

import torch

from groundspeed.backends import backend
from groundspeed.backends.triton_backend import interpreting
from groundspeed.build import BuildError, build_all, find_toolchain
from groundspeed.errors import UserError
from groundspeed.measure.bench import Fault, as_fault
from groundspeed.measure.contender import Contender, open_contender
from groundspeed.measure.protocol import Job
from groundspeed.tree import Implementation, Tree

Tell = Callable[[str], None]


def open_all(job: Job, tree: Tree, loading: Tell) -> dict[str, Contender | Fault]:
    """Every implementation of the job, or why it has none. ``loading`` is called with each name before its turn.

    CUDA files are compiled first, side by side: one after the other they would cost most of a run.
    """
    chosen = [tree.implementation(job.operator, name) for name in job.implementations]
    wanted = [one for one in chosen if one.name not in job.excluded]
    broken = _build(job.device, tree, wanted)
    opened: dict[str, Contender | Fault] = {}
    for implementation in chosen:
        name = implementation.name
        loading(name)
        if name in job.excluded:
            opened[name] = Fault("crash", job.excluded[name])
        elif name in broken:
            opened[name] = Fault("build", broken[name])
        else:
            opened[name] = _open(job, tree, implementation)
    return opened


def _open(job: Job, tree: Tree, implementation: Implementation) -> Contender | Fault:
    try:
        interpreted = job.check_only and implementation.backend == "triton" and interpreting()
        absent = None if interpreted else backend(implementation.backend).absent(job.device)
        return Fault(None, absent) if absent else open_contender(tree, implementation)
    except UserError as error:
        return Fault("error", str(error))
    except Exception as error:
        traceback.print_exc()  # the log keeps where it happened, the row what happened
        return as_fault(error, job.device)


def _build(device: str, tree: Tree, implementations: Sequence[Implementation]) -> dict[str, str]:
    """Compile every CUDA file; returns the compiler's complaint by implementation."""
    sources = {one.cuda_source: one.name for one in implementations if one.cuda_source}
    if device != "cuda" or not sources:
        return {}
    try:
        toolchain = find_toolchain("{}.{}".format(*torch.cuda.get_device_capability()))
    except UserError as error:
        return {name: str(error) for name in sources.values()}
    built = build_all(tree.root, [source for source in sources if source], toolchain)
    return {sources[source]: str(result) for source, result in built.items() if isinstance(result, BuildError)}
