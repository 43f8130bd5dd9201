"""Bytes that this process holds and could give back: what a leak makes grow, and what is kept between calls."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable

import torch

_NAMES = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
_SHARED_POOL = (0, 0)  # of torch's allocator; every other one belongs to a captured graph or to who made it


class _Mallinfo2(ctypes.Structure):
    """``struct mallinfo2`` of glibc 2.33 and later (mallinfo(3))."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in _NAMES)


def held_bytes(device: str) -> int | None:
    """Memory in use on the device: torch's and CuPy's on a GPU, the C heap's on a CPU; None where nobody counts it.

    A pool of a captured graph is in use as a whole: what is free in it is nobody else's.
    """
    if device == "cuda":
        cupy = sys.modules.get("cupy")
        others = int(cupy.get_default_memory_pool().used_bytes()) if cupy else 0
        return int(torch.cuda.memory_allocated()) + others + _pools.reserve()
    mallinfo2 = _mallinfo2()
    if mallinfo2 is None:
        return None
    info = mallinfo2()
    return int(info.uordblks + info.hblkhd)


class _Pools:
    """What graphs' pools hold beside what is allocated in them.

    To list all of the allocator's blocks takes a while, and is done where there may be such a pool: it takes segments
    from the device, so that there is none where none was taken since there was none. How much is reserved does not
    tell: a capture begins by giving back what lies unused, and may take as much.
    """

    def __init__(self) -> None:
        self._taken, self._reserve = -1, 0

    def reserve(self) -> int:
        taken = int(torch.cuda.memory_stats().get("segment.all.allocated", 0))
        if self._reserve or taken != self._taken:
            segments = torch.cuda.memory_snapshot()
            self._taken, self._reserve = taken, sum(map(_reserve_of, segments))
        return self._reserve


def reserved_by_graphs() -> int:
    """Bytes that pools of captured graphs hold beside what is allocated in them, those of dead graphs included."""
    return _pools.reserve()


def _reserve_of(segment: dict[str, object]) -> int:
    if segment.get("segment_pool_id", _SHARED_POOL) == _SHARED_POOL:
        return 0
    return int(str(segment["total_size"])) - int(str(segment["allocated_size"]))


_pools = _Pools()


@functools.cache
def _mallinfo2() -> Callable[[], _Mallinfo2] | None:
    function = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if function is not None:
        function.restype = _Mallinfo2
    return function
