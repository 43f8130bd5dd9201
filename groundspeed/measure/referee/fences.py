"""Inputs laid between two fences of known bytes, so that a write beside them shows.

The fences are all ones, which every floating format reads as NaN: an element read from outside poisons what is
computed from it.
"""

from __future__ import annotations

import torch

from groundspeed.measure.referee.bits import reach

GUARD = 16384  # bytes on each side; more than a tile of any kernel here strays
_ALIGNMENT = 512  # what the CUDA allocator gives; the offset within it is kept, since vector loads depend on it
_BYTE = 0xFF


def fenced(tensor: torch.Tensor, host: bool = False) -> torch.Tensor:
    """The same values, shape, strides and alignment in memory of its own between two fences.

    ``host`` asks for the host's memory, page-locked where the tensor is a GPU's. An empty tensor is returned as it is:
    it has no bytes to lie between.
    """
    elements = reach(tensor)
    if elements == 0:
        return tensor
    size = tensor.element_size()
    buffer = _buffer(2 * GUARD + 2 * _ALIGNMENT + elements * size, tensor.device, host)
    start = GUARD + (tensor.data_ptr() - buffer.data_ptr()) % _ALIGNMENT
    storage = buffer.untyped_storage()
    flat = torch.empty(0, dtype=tensor.dtype, device=buffer.device).set_(storage, start // size, (elements,), (1,))
    # The whole range, gaps included: an expanded or strided tensor is laid out as it was.
    flat.copy_(tensor.as_strided((elements,), (1,), tensor.storage_offset()))
    # set_ and not a view: a view would share its version counter with the buffer.
    return torch.empty(0, dtype=tensor.dtype, device=buffer.device).set_(
        storage, start // size, tensor.shape, tensor.stride()
    )


def _buffer(size: int, device: torch.device, host: bool) -> torch.Tensor:
    """That many bytes, all fence: on the device, or in the host's memory."""
    if not host:
        return torch.full((size,), _BYTE, dtype=torch.uint8, device=device)
    return torch.full((size,), _BYTE, dtype=torch.uint8, pin_memory=device.type == "cuda")


def broken(tensor: torch.Tensor) -> str:
    """ "before" or "behind" where a fence of this tensor was written to; empty where it stands or there is none."""
    before, behind = _fences(tensor)
    if not bool((before == _BYTE).all()):
        return "before"
    return "" if bool((behind == _BYTE).all()) else "behind"


def mend(tensor: torch.Tensor) -> None:
    """Put the fences up again."""
    for part in _fences(tensor):
        part.fill_(_BYTE)


def _fences(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The bytes right before and right behind; empty where the tensor was not laid between fences."""
    storage = tensor.untyped_storage()
    size = tensor.element_size()
    start = tensor.storage_offset() * size
    end = start + reach(tensor) * size
    whole = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    if tensor.numel() == 0 or start < GUARD or storage.nbytes() - end < GUARD:
        return whole, whole
    whole.set_(storage, 0, (storage.nbytes(),), (1,))
    return whole[start - GUARD : start], whole[end : end + GUARD]
