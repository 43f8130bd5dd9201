"""CUDA C++ extensions: a ``.cu`` file, and beside it perhaps a ``.py`` with ``unsupported`` and ``prepare(ops, …)``."""

from __future__ import annotations

import re

from groundspeed.backends.base import Opened, checked_run, torch_outputs, unsupported_of
from groundspeed.build import BuildError, build, find_toolchain
from groundspeed.errors import UserError
from groundspeed.tree import Implementation, Tree


def absent(device: str) -> str | None:
    return None if device == "cuda" else "CUDA kernels need a GPU"


def open_implementation(tree: Tree, implementation: Implementation) -> Opened:
    import torch

    source = implementation.cuda_source
    if source is None:
        raise BuildError(f"{implementation.name}: a cuda_* implementation is a .cu file, found {implementation.files}")
    try:
        toolchain = find_toolchain("{}.{}".format(*torch.cuda.get_device_capability()))
    except UserError as error:
        raise BuildError(str(error)) from error
    extension = build(tree.root, source, toolchain)
    torch.ops.load_library(str(extension.binary))
    ops = getattr(torch.ops, extension.namespace)
    companion = tree.load(f"{implementation.operator}.{implementation.name}") if implementation.python_source else None
    own = frozenset(_kernel_name(resource.name) for resource in extension.resources)

    def prepare(tensors):  # type: ignore[no-untyped-def]
        if companion is not None and hasattr(companion, "prepare"):
            return checked_run(companion.prepare(ops, **tensors), companion)
        run, arguments = ops.run.default, tuple(tensors.values())
        return lambda: run(*arguments)

    return Opened(
        prepare=prepare,
        unsupported=unsupported_of(companion),
        to_torch=torch_outputs,
        own_kernels=lambda: own,
        resources=lambda: extension.resources,
    )


def _kernel_name(demangled: str) -> str:
    """``void (anonymous namespace)::relu<float>(float*)`` → ``relu``: the part a profiler also shows."""
    bare = re.sub(r"\(anonymous namespace\)::|<unnamed>::", "", demangled)
    match = re.search(r"(\w+)\s*(?:<|\(|$)", bare.removeprefix("void "))
    return match.group(1) if match else demangled
