"""Implementations written in PyTorch: eager, torch.compile, torch.jit."""

from __future__ import annotations

from groundspeed.backends.base import Opened, prepare_of, torch_outputs, unsupported_of
from groundspeed.tree import Implementation, Tree


def absent(device: str) -> str | None:
    """PyTorch runs wherever groundspeed does."""
    return None


def open_implementation(tree: Tree, implementation: Implementation) -> Opened:
    module = tree.load(f"{implementation.operator}.{implementation.name}")
    return Opened(
        prepare=prepare_of(module),
        unsupported=unsupported_of(module),
        to_torch=torch_outputs,
    )
