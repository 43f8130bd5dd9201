"""A library's implementations on the CPU, in this process: right on check cases, and by the inputs of the moment."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from groundspeed.backends import backend
from groundspeed.operator import Case, Operator, Role
from groundspeed.tree import Implementation
from tests.impls.judge import TREE, accepted, reference


def implementations(name: str) -> list[Implementation]:
    """All by one back end."""
    return [one for operator in TREE.operators() for one in TREE.implementations(operator) if one.backend == name]


def label(implementation: Implementation) -> str:
    return f"{implementation.operator}/{implementation.name}"


def wrong_cases(implementation: Implementation, leave_out: Iterable[str] = ()) -> tuple[list[str], int]:
    """Check cases whose answer is not the oracle's once the data was changed in place, and how many were right.

    Cases of the dtypes that are left out, and those that it declines, are neither.
    """
    spec = TREE.spec(implementation.operator)
    opened = backend(implementation.backend).open_implementation(TREE, implementation)
    judged = [case for case in spec.check_cases if case.dtype not in leave_out and opened.unsupported(case) is None]
    wrong = [case.label for case in judged if not _is_right(opened, spec, case)]
    return wrong, len(judged) - len(wrong)


def _is_right(opened, spec: Operator, case: Case) -> bool:
    made = _inputs(spec, case, seed=0)
    held = {name: value.tensor for name, value in made.items()}
    run = opened.prepare(held)
    for name, fresh in _inputs(spec, case, seed=1).items():
        if fresh.role is Role.DATA:
            held[name].copy_(fresh.tensor)
    answers, expected = opened.to_torch(run()), reference(spec, held)
    expected = tuple(expected) if isinstance(expected, tuple | list) else (expected,)
    return len(answers) == len(expected) and all(
        out.dtype == getattr(torch, case.dtype) and out.shape == right.shape and accepted(spec, case, out, right)
        for out, right in zip(answers, expected, strict=True)
    )


def _inputs(spec: Operator, case: Case, seed: int):
    generator = torch.Generator().manual_seed(seed)
    return spec.inputs(generator, getattr(torch, case.dtype), torch.device("cpu"), **case.dims)
