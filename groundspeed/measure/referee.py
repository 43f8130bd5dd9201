"""The referee: is an output the operator's answer, honestly computed?

Each check is one function that returns a complaint or None. ``judge`` puts an implementation through all of them on
two sets of inputs: the second is written over the first in place after ``prepare``, so an answer computed early, or
remembered, is an old one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from groundspeed.operator import Case, Operator, Tolerance
from groundspeed.records import Accuracy

_CHUNK = 1 << 26  # elements compared at once: an error over 3 GB must not need 25 GB of float64
_POISON = 0xFF  # every floating format reads all-ones bytes as NaN


@dataclass(frozen=True)
class Complaint:
    """What was wrong: a check's name and what it saw, with what it expected."""

    check: str
    message: str

    def __str__(self) -> str:
        return f"{self.check}: {self.message}"


Outputs = tuple[torch.Tensor, ...]
Call = Callable[[], Outputs]


def signature(outputs: Outputs, expected: Outputs, case: Case, device: str) -> Complaint | None:
    """Number, shape, dtype and device of the outputs, and that they are dense."""
    if len(outputs) != len(expected):
        return Complaint("outputs", f"{len(outputs)} returned, expected {len(expected)}")
    for out, ref in zip(outputs, expected, strict=True):
        if not isinstance(out, torch.Tensor):
            return Complaint("type", f"returned a {type(out).__name__}, expected a tensor")
        if out.shape != ref.shape:
            return Complaint("shape", f"returned {tuple(out.shape)}, expected {tuple(ref.shape)}")
        wanted = getattr(torch, case.dtype) if ref.is_floating_point() else ref.dtype
        if out.dtype != wanted:
            return Complaint("dtype", f"returned {out.dtype}, expected {wanted}")
        if out.device.type != device:
            return Complaint("device", f"returned a tensor on {out.device}, expected {device}")
        if not _dense(out):
            return Complaint(
                "strides", f"returned strides {out.stride()} for {tuple(out.shape)}, expected dense memory"
            )
    return None


def accuracy(outputs: Outputs, expected: Outputs, tolerance: Tolerance) -> tuple[Accuracy, Complaint | None]:
    """Error against the oracle, and the complaint where the tolerance does not cover it."""
    total = _Errors()
    for out, ref in zip(outputs, expected, strict=True):
        for piece, wanted in _chunks(out, ref):
            total.add(piece, wanted, tolerance)
    found = total.result()
    if total.not_finite:
        return found, Complaint(
            "finite", f"{total.not_finite} elements are NaN or infinite where the reference is finite"
        )
    if total.not_equal:
        return found, Complaint(
            "special values", f"{total.not_equal} elements differ where the reference is NaN or infinite"
        )
    if found.tolerance_used > 1:
        return found, Complaint(
            "tolerance",
            f"max |out - ref| = {found.max_abs:.3g} is {found.tolerance_used:.3g} times what "
            f"atol {tolerance.atol:.3g} + rtol {tolerance.rtol:.3g} allows",
        )
    if found.norm > tolerance.norm_bound:
        return found, Complaint(
            "norm", f"||out - ref|| / ||ref|| = {found.norm:.3g}, allowed {tolerance.norm_bound:.3g}"
        )
    return found, None


def unchanged(inputs: dict[str, torch.Tensor], copies: dict[str, torch.Tensor]) -> Complaint | None:
    """The inputs hold what they held, bit for bit."""
    for name, tensor in inputs.items():
        if not same_bits(tensor, copies[name]):
            return Complaint("inputs unchanged", f"input {name!r} was modified")
    return None


def fresh_memory(first: Outputs, second: Outputs, inputs: dict[str, torch.Tensor]) -> Complaint | None:
    """Two outputs held at once share no memory with each other nor with an input."""
    ranges = [("input " + repr(name), _span(tensor)) for name, tensor in inputs.items()]
    ranges += [("an earlier output", _span(tensor)) for tensor in first]
    for out in second:
        low, high = _span(out)
        for label, (start, end) in ranges:
            if low < end and start < high:
                return Complaint(
                    "fresh memory", f"the output shares memory with {label}: return a new tensor each call"
                )
    return None


def judge(
    call: Call,
    inputs: dict[str, torch.Tensor],
    copies: dict[str, torch.Tensor],
    expected: Outputs,
    spec: Operator,
    case: Case,
    device: str,
) -> tuple[Accuracy | None, Complaint | None]:
    """Two calls on the inputs as they stand: right, honest, repeatable."""
    poison_free_memory(expected, case, device)
    first = call()
    synchronize(device)
    complaint = signature(first, expected, case, device)
    if complaint:
        return None, complaint
    found, complaint = accuracy(first, expected, spec.tolerance[case.dtype])
    if complaint is None:
        complaint = unchanged(inputs, copies)
    if complaint is None:
        second = call()
        synchronize(device)
        complaint = fresh_memory(first, second, inputs)
    if complaint is None:
        _, complaint = accuracy(first, expected, spec.tolerance[case.dtype])
        complaint = complaint and Complaint("fresh memory", "a second call changed the first call's output")
    if complaint is None:
        _, complaint = accuracy(second, expected, spec.tolerance[case.dtype])
        complaint = complaint and Complaint("second call", complaint.message)
    return found, complaint


def poison_free_memory(expected: Outputs, case: Case, device: str) -> None:
    """Fill memory that the allocator will hand out next, so that an element nobody writes reads as NaN."""
    blocks = []
    for ref in expected:
        itemsize = torch.empty((), dtype=getattr(torch, case.dtype)).element_size()
        size = ref.numel() * itemsize
        if size and (device != "cuda" or 3 * size < torch.cuda.mem_get_info()[0]):
            blocks += [torch.full((size,), _POISON, dtype=torch.uint8, device=device) for _ in range(2)]
    synchronize(device)
    del blocks


def impossible(
    read: int, written: int, l2_bytes: int, flops: int, ns: float, peak_bytes: float, peak_flops: float
) -> str:
    """Why a time cannot be true, or an empty string.

    ``read`` and ``written`` in bytes, ``peak_bytes`` in bytes/s, ``peak_flops`` in FLOP/s (0 where not known). Only
    bytes that must cross DRAM count: reads, and writes beyond the L2, which may still hold the rest when the kernel
    ends. Under four times the L2 bandwidth says nothing.
    """
    seconds = ns * 1e-9
    must_cross = read + max(0, written - l2_bytes)
    if peak_bytes and read + written > 4 * l2_bytes and must_cross > peak_bytes * seconds:
        return f"{must_cross / seconds / 1e12:.2f} TB/s, the datasheet's peak is {peak_bytes / 1e12:.2f}"
    if peak_flops and flops > peak_flops * seconds:
        return f"{flops / seconds / 1e12:.1f} TFLOP/s, the datasheet's peak is {peak_flops / 1e12:.1f}"
    return ""


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


class _Errors:
    """Sums and maxima of the error over chunks."""

    def __init__(self) -> None:
        self.max_abs = self.max_rel = self.used = 0.0
        self.square = self.reference_square = 0.0
        self.not_finite = self.not_equal = 0

    def add(self, out: torch.Tensor, ref: torch.Tensor, tolerance: Tolerance) -> None:
        wide = out.to(torch.float64)
        ref = ref.to(torch.float64)
        finite = torch.isfinite(ref)
        same = (wide == ref) | (torch.isnan(wide) & torch.isnan(ref))
        # A reference beyond the dtype's range rounds to infinity: an infinite output of its sign is then right.
        overflow = (
            torch.isinf(wide) & (ref.abs() >= torch.finfo(out.dtype).max) & (wide.sign() == ref.sign())
            if out.is_floating_point()
            else torch.zeros_like(finite)
        )
        self.not_equal += int((~finite & ~same).sum())
        self.not_finite += int((finite & ~torch.isfinite(wide) & ~overflow).sum())
        usable = finite & torch.isfinite(wide)
        difference = torch.where(usable, wide - ref, torch.zeros_like(ref)).abs()
        size = torch.where(usable, ref, torch.zeros_like(ref)).abs()
        tiny = torch.finfo(out.dtype).tiny if out.is_floating_point() else 1.0
        self.max_abs = max(self.max_abs, float(difference.max()))
        self.max_rel = max(self.max_rel, float(torch.where(size > tiny, difference / size.clamp_min(tiny), 0.0).max()))
        allowed = tolerance.atol + tolerance.rtol * size
        used = torch.where(difference > 0, difference / allowed, torch.zeros_like(difference))
        self.used = max(self.used, float(used.max()))
        self.square += float(difference.square().sum())
        self.reference_square += float(size.square().sum())

    def result(self) -> Accuracy:
        if self.reference_square:
            norm = math.sqrt(self.square / self.reference_square)
        else:
            norm = math.inf if self.square else 0.0
        return Accuracy(self.max_abs, self.max_rel, norm, self.used)


def _chunks(out: torch.Tensor, ref: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    flat, wanted = out.reshape(-1), ref.reshape(-1)
    for start in range(0, flat.numel(), _CHUNK):
        yield flat[start : start + _CHUNK], wanted[start : start + _CHUNK]


def _dense(tensor: torch.Tensor) -> bool:
    """Non-overlapping and without gaps, in any order of dimensions."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size == 1:
            continue
        if size == 0:
            return True
        if stride != expected:
            return False
        expected *= size
    return True


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Equal bit for bit, NaNs included."""
    if left.is_floating_point():
        kind = {2: torch.int16, 4: torch.int32, 8: torch.int64}[left.element_size()]
        left, right = left.view(kind), right.view(kind)
    return torch.equal(left, right)


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """Addresses from the first to past the last byte of a dense or strided tensor."""
    if tensor.numel() == 0:
        return 0, 0
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (reach + 1) * tensor.element_size()


def clones(inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies to compare with later, laid out as the originals."""
    return {name: tensor.clone() for name, tensor in inputs.items()}


def as_outputs(value: Any, convert: Callable[[Any], Sequence[Any]]) -> Outputs:
    """A native output as torch tensors."""
    return tuple(convert(value))
