"""Bytes that this process holds and could give back: what a leak makes grow."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable

import torch

_NAMES = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class _Mallinfo2(ctypes.Structure):
    """``struct mallinfo2`` of glibc 2.33 and later (mallinfo(3))."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in _NAMES)


def held_bytes(device: str) -> int | None:
    """Memory in use on the device: torch's and CuPy's on a GPU, the C heap's on a CPU; None where nobody counts it."""
    if device == "cuda":
        cupy = sys.modules.get("cupy")
        others = int(cupy.get_default_memory_pool().used_bytes()) if cupy else 0
        return int(torch.cuda.memory_allocated()) + others
    mallinfo2 = _mallinfo2()
    if mallinfo2 is None:
        return None
    info = mallinfo2()
    return int(info.uordblks + info.hblkhd)


@functools.cache
def _mallinfo2() -> Callable[[], _Mallinfo2] | None:
    function = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if function is not None:
        function.restype = _Mallinfo2
    return function
