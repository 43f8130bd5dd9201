"""An operator's spec applied by hand: its inputs, its oracle and its tolerance, without the referee."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from groundspeed.operator import Case, Operator
from groundspeed.tree import Tree

TREE = Tree(Path(__file__).parents[2] / "impls")


def tensors(spec: Operator, case: Case, seed: int = 0) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    made = spec.inputs(generator, getattr(torch, case.dtype), torch.device("cpu"), **case.dims)
    return {name: entry.tensor for name, entry in made.items()}


def reference(spec: Operator, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
    wide = {name: value.double() if value.is_floating_point() else value for name, value in inputs.items()}
    return spec.reference(**wide)


def accepted(spec: Operator, case: Case, out: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether the tolerance covers ``out``: element by element, in the norm, and at NaN and infinities."""
    tolerance, out = spec.tolerance[case.dtype], out.double()
    finite = torch.isfinite(expected)
    if not torch.equal(torch.nan_to_num(out[~finite]), torch.nan_to_num(expected[~finite])):
        return False
    if not torch.equal(torch.isnan(out), torch.isnan(expected)):
        return False
    error, size = (out - expected)[finite], expected[finite]
    within = error.abs() <= tolerance.atol + tolerance.rtol * size.abs()
    return bool(within.all() and error.norm() <= tolerance.norm_bound * size.norm())
