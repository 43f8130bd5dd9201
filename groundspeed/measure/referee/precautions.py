"""What is done before a call, so that a fault shows instead of hiding behind luck."""

from __future__ import annotations

import torch

from groundspeed.measure.referee.tools import synchronize
from groundspeed.measure.referee.trial import Sheet, itemsize

_POISON = 0xFF  # every floating format reads all-ones bytes as NaN
_KEPT_BY_THE_HEAP = 32 << 20  # glibc returns freed blocks over 32 MiB to the system: poison in them is never seen
_SPIN_CYCLES = 400_000  # some 0.2 ms: time for the host to issue the call behind it


def poison_free_memory(sheet: Sheet) -> None:
    """Fill memory that the allocator will hand out next, so that an element nobody writes reads as NaN.

    Two blocks of each output's size: one for the output, one for a temporary of that size.
    """
    fill_free_memory(sheet, _POISON)


def fill_free_memory(sheet: Sheet, byte: int) -> None:
    """Fill free blocks of each output's size with a byte."""
    blocks = []
    for ref in sheet.expected:
        size = ref.numel() * itemsize(ref, sheet.case)
        if size and 3 * size < _reusable(sheet.device):
            blocks += [torch.full((size,), byte, dtype=torch.uint8, device=sheet.device) for _ in range(2)]
    synchronize(sheet.device)


def _reusable(device: str) -> int:
    return int(torch.cuda.mem_get_info()[0]) if device == "cuda" else 3 * _KEPT_BY_THE_HEAP


def inputs_come_late(sheet: Sheet) -> None:
    """On a GPU the inputs are put into place by work that is still queued on the current stream when ``run`` is called.

    A kernel on another stream that does not wait for the current one reads all-ones bytes instead.
    """
    if sheet.device != "cuda":
        return
    for tensor in sheet.held.values():
        if tensor.is_floating_point() and tensor.numel():
            tensor.data.fill_(float("nan"))
    synchronize(sheet.device)
    torch.cuda._sleep(_SPIN_CYCLES)
    for name, tensor in sheet.held.items():
        if tensor.is_floating_point() and tensor.numel():
            tensor.data.copy_(sheet.copies[name])
