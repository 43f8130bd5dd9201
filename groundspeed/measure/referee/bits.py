"""Tensors compared bit for bit, and where in memory they lie."""

from __future__ import annotations

from collections.abc import Mapping

import torch

_INTEGER = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Equal bit for bit, NaNs included."""
    if left.is_floating_point():
        kind = _INTEGER[left.element_size()]
        left, right = left.resolve_neg().view(kind), right.resolve_neg().view(kind)
    return torch.equal(left, right)


def clones(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies to compare with later, laid out as the originals."""
    return {name: tensor.clone() for name, tensor in tensors.items()}


def reach(tensor: torch.Tensor) -> int:
    """Elements from a tensor's first to past its last one in memory, gaps included."""
    if tensor.numel() == 0:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def span(tensor: torch.Tensor) -> tuple[int, int]:
    """Addresses of a tensor's first byte and past its last one."""
    start = tensor.data_ptr()
    return start, start + reach(tensor) * tensor.element_size()


def overlap(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether the address ranges of two tensors meet."""
    (start, end), (low, high) = span(left), span(right)
    return start < high and low < end


def dense(tensor: torch.Tensor) -> bool:
    """Non-overlapping and without gaps, in any order of dimensions."""
    if tensor.numel() == 0:
        return True
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True
