"""The tensors of a case: drawn from a seed, shared by all implementations, overwritten in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from groundspeed.errors import UserError
from groundspeed.operator import Case, Input, Operator, Role

CaseInputs = Mapping[str, Input]


def make_inputs(operator: str, spec: Operator, case: Case, device: str, seed: int) -> CaseInputs:
    """Fresh inputs of a case. The same seed gives the same values on the same kind of device."""
    generator = torch.Generator(device=device).manual_seed(seed)
    made = spec.inputs(generator, getattr(torch, case.dtype), torch.device(device), **case.dims)
    for name, value in made.items():
        if not isinstance(value, Input) or not isinstance(value.tensor, torch.Tensor):
            kind = type(value).__name__
            raise UserError(f"{operator}: inputs() gave a {kind} for {name!r}; mark it with data(...) or weight(...)")
    return dict(made)


def tensors(inputs: CaseInputs) -> dict[str, torch.Tensor]:
    """The bare tensors by name."""
    return {name: value.tensor for name, value in inputs.items()}


def overwrite_data(inputs: CaseInputs, fresh: CaseInputs) -> None:
    """Give the data inputs new values in place, so that work done in ``prepare`` on them shows."""
    for name, value in inputs.items():
        if value.role is Role.DATA:
            value.tensor.copy_(fresh[name].tensor)


def same_weights(inputs: CaseInputs, fresh: CaseInputs) -> CaseInputs:
    """Fresh data beside the weights that the implementations were prepared with: what the oracle must see."""
    return {name: fresh[name] if value.role is Role.DATA else value for name, value in inputs.items()}


def reference(spec: Operator, inputs: CaseInputs) -> tuple[torch.Tensor, ...]:
    """The float64 answer. Floating inputs are upcast from the case's dtype, integers stay."""
    wide: dict[str, Any] = {}
    for name, value in inputs.items():
        tensor = value.tensor
        wide[name] = tensor.to(torch.float64) if tensor.is_floating_point() else tensor
    answer = spec.reference(**wide)
    return tuple(answer) if isinstance(answer, tuple | list) else (answer,)
