"""Load an operator's implementations in a worker; one that cannot be loaded is its fault and stops no other."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from groundspeed.backends import backend
from groundspeed.backends.base import ChangesTorch, Unusable
from groundspeed.backends.triton_backend import interpreting
from groundspeed.build import BuildError, build_each, find_toolchain
from groundspeed.cores import CORES_BESIDE_OTHERS
from groundspeed.errors import UserError
from groundspeed.measure.bench import Fault, as_fault
from groundspeed.measure.contender import Contender, open_contender
from groundspeed.measure.kept import keeping
from groundspeed.measure.protocol import Job
from groundspeed.measure.referee import settings, tools
from groundspeed.tree import Implementation, Tree

Entry = tuple[str, Tree, Implementation]
Tell = Callable[[str], None]


class Spoiled(Exception):
    """Loading an implementation has changed this process for all others: it must end, and one without it go on."""

    def __init__(self, label: str, reason: str) -> None:
        super().__init__(reason)
        self.label, self.reason = label, reason


def open_all(job: Job, tree: Tree, loading: Tell) -> dict[str, Contender | Fault]:
    """Every implementation of the job, or why it has none. ``loading`` is called with each name before its turn.

    CUDA files are compiled first, side by side: one after the other they would cost most of a run. Meanwhile
    ``loading`` is called without a name at each that is done.

    Raises Spoiled, with the one that was being loaded: nothing may be measured in this process any more.
    """
    chosen = entries(job, tree)
    tools.watch()  # before the first file of an implementation is imported
    asked = [entry for entry in chosen if entry[0] not in job.excluded]
    broken = _build(job.device, asked, lambda: loading(""), CORES_BESIDE_OTHERS if job.turns else None)
    opened: dict[str, Contender | Fault] = {}
    for label, own_tree, implementation in chosen:
        loading(label)
        if label in job.excluded:
            opened[label] = Fault("crash", job.excluded[label])
        elif label in broken:
            opened[label] = Fault("build", broken[label])
        else:
            opened[label] = _open(job, own_tree, implementation, label)
    return opened


def entries(job: Job, tree: Tree) -> list[Entry]:
    """Label, tree and implementation of every contender; the sides of a comparison have trees of their own."""
    if not job.sides:
        return [(name, tree, tree.implementation(job.operator, name)) for name in job.implementations]
    trees: dict[str, Tree] = {}
    found = []
    for side in job.sides:
        if side.label in job.implementations:
            own = trees.setdefault(side.package, Tree(Path(side.tree), side.package, specs=tree.spec_tree))
            found.append((side.label, own, own.implementation(job.operator, side.implementation)))
    return found


def _open(job: Job, tree: Tree, implementation: Implementation, label: str) -> Contender | Fault:
    try:
        interpreted = job.check_only and implementation.backend == "triton" and interpreting()
        # Interpreted, a kernel wants its library as on a GPU, and no GPU.
        absent = backend(implementation.backend).absent("cuda" if interpreted else job.device)
        return Fault(None, absent) if absent else _loaded(job.device, tree, implementation, label)
    except Unusable as error:
        return Fault(None, str(error))
    except ChangesTorch as error:
        raise Spoiled(label, str(error)) from error
    except UserError as error:
        return Fault("error", str(error))
    except Exception as error:
        traceback.print_exc()  # the log keeps where it happened, the row what happened
        return as_fault(error, job.device, tree.root)


def _loaded(device: str, tree: Tree, implementation: Implementation, label: str) -> Contender | Fault:
    """Load it; a file that changes the harness's tools or torch's settings when imported is refused."""
    before = settings.current(device)
    with keeping(device) as found:
        contender = open_contender(tree, implementation, label)
    contender = replace(contender, loaded_bytes=found.kept.allocated)
    changed = [*tools.replaced(), *(f"torch's {name}" for name in settings.changed(before, device))]
    if not changed:
        return contender
    tools.put_back()
    settings.restore(before, device)
    return Fault("incorrect", f"its import changes {', '.join(changed)}, which is not its alone")


def _build(device: str, entries: Sequence[Entry], beat: Callable[[], None], workers: int | None) -> dict[str, str]:
    """Compile every CUDA file, so many at once or one a core; returns the compiler's complaint by label."""
    sources = [(label, tree.home(one).root, one.cuda_source) for label, tree, one in entries if one.cuda_source]
    if device != "cuda" or not sources:
        return {}
    try:
        toolchain = find_toolchain("{}.{}".format(*torch.cuda.get_device_capability()))
    except UserError as error:
        return {label: str(error) for label, _, _ in sources}
    beat()
    built = build_each(
        [(root, source) for _, root, source in sources], toolchain, workers=workers, done=lambda source: beat()
    )
    return {label: str(built[source]) for label, _, source in sources if isinstance(built[source], BuildError)}
