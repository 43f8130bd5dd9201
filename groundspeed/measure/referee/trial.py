"""A trial: a few calls of an implementation, and all that the checks need to have seen of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from groundspeed.measure.referee.bits import same_bits
from groundspeed.measure.referee.errors import Errors
from groundspeed.operator import Case, Operator, Tolerance

Outputs = tuple[torch.Tensor, ...]
Run = Callable[[], Any]


@dataclass(frozen=True)
class Complaint:
    """What was wrong: a check's name and what it saw, with what it expected."""

    check: str
    message: str

    def __str__(self) -> str:
        return f"{self.check}: {self.message}"


@dataclass(frozen=True)
class Sheet:
    """What a trial is judged by.

    held
        The inputs as every implementation sees them.
    copies
        What those inputs hold, to compare with afterwards.
    expected
        The oracle's answer to them, in float64.
    device
        "cuda" or "cpu".
    settings
        torch's global settings as they were before any implementation ran.
    """

    held: Mapping[str, torch.Tensor]
    copies: Mapping[str, torch.Tensor]
    expected: Outputs
    spec: Operator
    case: Case
    device: str
    settings: Mapping[str, object]

    @property
    def tolerance(self) -> Tolerance:
        return self.spec.tolerance[self.case.dtype]

    def modified(self) -> tuple[str, ...]:
        """Names of inputs that no longer hold, bit for bit, what they held."""
        return tuple(name for name, tensor in self.held.items() if not same_bits(tensor, self.copies[name]))

    @property
    def output_bytes(self) -> int:
        """Bytes of one output in the case's dtype."""
        return sum(ref.numel() * itemsize(ref, self.case) for ref in self.expected)


def wanted_dtype(ref: torch.Tensor, case: Case) -> torch.dtype:
    """The dtype an output must have: the case's where the oracle is floating, else the oracle's own."""
    dtype: torch.dtype = getattr(torch, case.dtype) if ref.is_floating_point() else ref.dtype
    return dtype


def itemsize(ref: torch.Tensor, case: Case) -> int:
    return int(wanted_dtype(ref, case).itemsize)


@dataclass(frozen=True)
class Trial:
    """What was seen.

    native
        The first call's output as ``run`` returned it.
    first
        The same as torch tensors. It was held while the later calls were made.
    early
        Copies of it made in the current stream right behind the call, waiting for nothing else.
    late
        Whether it changed between that copy and the end of all work on the device.
    touched
        Inputs that the first call changed; what an even number of calls puts right again shows here.
    repeats
        Outputs of the later calls, at least one, all held at once.
    """

    sheet: Sheet
    native: Any
    first: Outputs
    early: Outputs
    late: bool
    touched: tuple[str, ...]
    repeats: tuple[Outputs, ...]

    @cached_property
    def errors(self) -> Errors:
        """Of the first output, before anything else could change it."""
        return Errors.of(self.early, self.sheet.expected, self.sheet.tolerance)


Check = Callable[[Trial], Complaint | None]


def same_outputs(left: Sequence[torch.Tensor], right: Sequence[torch.Tensor]) -> bool:
    """Bit for bit; what is no tensor compares as different unless it is the same object."""
    return len(left) == len(right) and all(
        same_bits(a, b) if _comparable(a, b) else a is b for a, b in zip(left, right, strict=True)
    )


def _comparable(left: Any, right: Any) -> bool:
    tensors = isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor)
    return tensors and left.dtype == right.dtype and not left.is_meta and not right.is_meta
