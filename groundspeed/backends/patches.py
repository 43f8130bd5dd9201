"""What a library changes of torch for everybody in its process: functions that it replaces, kernels put over ATen's."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType

_OWNERS = ("torch", "torch.nn.functional", "torch.cuda", "torch.linalg", "torch.autograd")
_CLASSES = ("Tensor", "nn.Module", "nn.Linear", "autograd.Function")
_LATE = "torch._dynamo"  # whose own import replaces some of these: it must lie before what is looked at


@dataclass(frozen=True)
class Seen:
    """torch's public names with what they meant, and the kernels that Python had put over ATen's."""

    names: Mapping[str, object]
    kernels: frozenset[str]


def seen() -> Seen:
    import torch

    importlib.import_module(_LATE)
    # The set that torch.library keeps of its registrations, "aten/softmax.int/CUDA"; private, and may be gone one day.
    registered = getattr(importlib.import_module("torch.library"), "_impls", ())
    names = {name: value for owner in _owners(torch) for name, value in _public(*owner)}
    return Seen(names, frozenset(name for name in registered if name.startswith("aten/")))


def since(before: Seen) -> tuple[str, ...]:
    """What is not what it was, by name; what has been added to torch is no change of it."""
    now = seen()
    replaced = [name for name, value in before.names.items() if now.names.get(name) is not value]
    return (*replaced, *sorted(now.kernels - before.kernels))


def _owners(torch: ModuleType) -> Iterator[tuple[str, object]]:
    for name in _OWNERS:
        yield name, importlib.import_module(name)
    for path in _CLASSES:
        found: object = torch
        for part in path.split("."):
            found = getattr(found, part)
        yield f"torch.{path}", found


def _public(name: str, owner: object) -> Iterator[tuple[str, object]]:
    """Methods as they are stored, inherited ones included: bound anew, no two are the same."""
    for attribute in dir(owner):
        value = inspect.getattr_static(owner, attribute, None)
        if callable(value) and (not attribute.startswith("_") or attribute == "__init__"):
            yield f"{name}.{attribute}", value
