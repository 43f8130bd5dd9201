"""Small device kernels of the harness: a read that empties the L2, and a mark between two calls.

They are Triton kernels because every CUDA build of torch brings Triton, and none needs a compiler of the system.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
import triton
import triton.language as tl

_BLOCK = 8192


@triton.jit
def groundspeed_flush(source, sink, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Read n 32-bit words. The store never happens (the words are zeros), and the compiler cannot know it."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.sum(tl.load(source + offsets, mask=offsets < n, other=0))
    tl.store(sink, total, mask=total == 1)


@triton.jit
def groundspeed_mark(sink):  # type: ignore[no-untyped-def]
    """Nothing, under a name: it parts two calls in the stream of events."""
    value = tl.load(sink)
    tl.store(sink, value, mask=value == 1)


@triton.jit
def groundspeed_mix(source, target, n, READS: tl.constexpr, WRITES: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Read READS arrays of n 32-bit words that lie one after the other, and write WRITES such arrays."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    total = tl.zeros((BLOCK,), tl.int32)
    for number in tl.static_range(READS):
        total += tl.load(source + number * n + offsets, mask=inside)
    for number in tl.static_range(WRITES):
        tl.store(target + number * n + offsets, total + number, mask=inside)


class Flush:
    """Empties the L2 by reading twice its size.

    A flush by writing (as a memset does) leaves dirty lines whose write-back then lands in the timed region: +10 %
    measured on a 64 MiB memory-bound kernel.
    """

    def __init__(self, device: torch.device) -> None:
        l2 = torch.cuda.get_device_properties(device).L2_cache_size
        self._source = torch.zeros(max(2 * l2, 32 << 20) // 4, dtype=torch.int32, device=device)
        self._sink = torch.zeros(1, dtype=torch.int32, device=device)

    @property
    def bytes(self) -> int:
        return self._source.numel() * 4

    def __call__(self) -> None:
        read(self._source, self._sink)

    def mark(self) -> None:
        groundspeed_mark[(1,)](self._sink, num_warps=1)


class MemsetFlush(Flush):
    """Empties the L2 by a memset of its size, as NVBench does, to show what that changes; nothing is judged by it.

    A read of one block follows the memset: the name by which a record shows where a flush ended.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self._source = self._source[:_BLOCK].clone()
        l2 = torch.cuda.get_device_properties(device).L2_cache_size
        self._target = torch.empty(l2, dtype=torch.uint8, device=device)
        self._memset = ctypes.CDLL("libcuda.so.1").cuMemsetD8Async  # torch's own zero_() is a kernel
        self._memset.argtypes = (ctypes.c_uint64, ctypes.c_ubyte, ctypes.c_size_t, ctypes.c_void_p)

    def __call__(self) -> None:
        stream = torch.cuda.current_stream().cuda_stream
        status = self._memset(self._target.data_ptr(), 0, self._target.numel(), stream)
        if status != 0:
            raise RuntimeError(f"cuMemsetD8Async returned {status}")
        super().__call__()


def mix(source: Any, target: Any, reads: int, writes: int, block: int) -> None:
    """Read a tensor of 32-bit words whose ``reads`` equal parts are added up, and write ``writes`` parts of as many."""
    n = source.numel() // reads
    groundspeed_mix[(triton.cdiv(n, block),)](
        source, target, n, READS=reads, WRITES=writes, BLOCK=block, num_warps=max(1, block // 512)
    )


def read(source: Any, sink: Any) -> None:
    """Read a tensor of zeros of 32-bit words from end to end."""
    n = source.numel()
    groundspeed_flush[(triton.cdiv(n, _BLOCK),)](source, sink, n, BLOCK=_BLOCK, num_warps=8)
