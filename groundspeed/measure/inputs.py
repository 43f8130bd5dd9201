"""The tensors of a case: drawn from a seed, shared by all implementations; and the oracle's answer to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from groundspeed.errors import UserError
from groundspeed.measure.referee import fences
from groundspeed.operator import Case, Input, Operator

CaseInputs = Mapping[str, Input]


def make_inputs(operator: str, spec: Operator, case: Case, device: str, seed: int) -> CaseInputs:
    """Fresh inputs of a case, each between two fences, those marked ``host_data`` in the host's memory.

    The same seed gives the same values on the same kind of device.
    """
    generator = torch.Generator(device=device).manual_seed(seed)
    made = spec.inputs(generator, getattr(torch, case.dtype), torch.device(device), **case.dims)
    for name, value in made.items():
        if not isinstance(value, Input) or not isinstance(value.tensor, torch.Tensor):
            kind = type(value).__name__
            raise UserError(f"{operator}: inputs() gave a {kind} for {name!r}; mark it with data(...) or weight(...)")
    return {name: replace(value, tensor=fences.fenced(value.tensor, value.host)) for name, value in made.items()}


def tensors(inputs: CaseInputs) -> dict[str, torch.Tensor]:
    """The bare tensors by name."""
    return {name: value.tensor for name, value in inputs.items()}


def reference(spec: Operator, inputs: CaseInputs, device: str) -> tuple[torch.Tensor, ...]:
    """The float64 answer, on the device. Floating inputs are upcast from the case's dtype, integers stay."""
    wide: dict[str, Any] = {}
    for name, value in inputs.items():
        tensor = value.tensor.to(device) if value.host else value.tensor
        wide[name] = tensor.to(torch.float64) if tensor.is_floating_point() else tensor
    answer = spec.reference(**wide)
    return tuple(answer) if isinstance(answer, tuple | list) else (answer,)
