"""What is done around a call, so that a fault shows instead of hiding behind luck."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator

import torch

from groundspeed.measure.referee.tools import synchronize
from groundspeed.measure.referee.trial import Sheet, itemsize

_NAN = 0xFF  # every floating format reads all-ones bytes as NaN
_HUGE = 0x7F  # 3.4e38 in float32 and bfloat16, NaN in float16: the C library can fill with no byte nearer to NaN
_M_PERTURB = -6  # <malloc.h>
_CACHED_BY_THREADS = 1032  # bytes; glibc hands blocks up to this size out of a list that M_PERTURB does not reach
_SPIN_CYCLES = 400_000  # some 0.2 ms: time for the host to issue the call behind it


@contextlib.contextmanager
def poisoned_memory(sheet: Sheet) -> Iterator[None]:
    """Inside, fresh memory holds no answer: an element that nobody writes is NaN, or huge.

    On a GPU free blocks of each output's size are filled beforehand, and the allocator hands them out next. The C heap
    merges and splits its blocks, so there glibc itself is told to fill each one it hands out (mallopt(3), M_PERTURB).
    """
    with filled_memory(sheet, _NAN, _HUGE):
        yield


@contextlib.contextmanager
def filled_memory(sheet: Sheet, byte: int, heap_byte: int) -> Iterator[None]:
    """Fill fresh memory with a byte, on the C heap with one that glibc can be told (any but 0xFF)."""
    mallopt = None if sheet.device == "cuda" else _mallopt()
    blocks = _filled_blocks(sheet, byte, mallopt is not None)
    synchronize(sheet.device)
    del blocks
    if mallopt is None:
        yield
        return
    mallopt(_M_PERTURB, ~heap_byte & 0xFF)
    try:
        yield
    finally:
        mallopt(_M_PERTURB, 0)


def _worth_filling(size: int, device: str, told: bool) -> bool:
    if device == "cuda":
        return 3 * size < int(torch.cuda.mem_get_info()[0])
    return not told or size <= _CACHED_BY_THREADS


@functools.cache
def _mallopt() -> Callable[[int, int], int] | None:
    """glibc's mallopt, or None where the C library is another one."""
    library = ctypes.CDLL(None)
    return library.mallopt if hasattr(library, "gnu_get_libc_version") else None


def inputs_come_late(sheet: Sheet) -> None:
    """On a GPU the inputs are put into place by work that is still queued on the current stream when ``run`` is called.

    A kernel on another stream that does not wait for the current one reads NaN instead. Inputs in the host's memory are
    there when ``run`` is called; behind them it is the output's memory that is still being written to, with NaN.
    """
    if sheet.device != "cuda":
        return
    late = [name for name, held in sheet.held.items() if held.is_cuda and held.is_floating_point() and held.numel()]
    for name in late:
        sheet.held[name].data.fill_(float("nan"))
    synchronize(sheet.device)
    torch.cuda._sleep(_SPIN_CYCLES)
    for name in late:
        sheet.held[name].data.copy_(sheet.copies[name])
    if not all(held.is_cuda for held in sheet.held.values()):
        _filled_blocks(sheet, _NAN, told=False)  # given back at once, and handed out again on this stream


def peek(out: torch.Tensor) -> torch.Tensor:
    """A copy of what the next work on the current stream would read, before anything is waited for.

    On a GPU the copy goes ahead of whatever else is ready to run: it is made on a stream of higher priority, which
    waits for the current one, as that does for it. Work on another stream that nobody waits for becomes ready at the
    same moment as the copy (``inputs_come_late`` holds both back), and where both had the same priority it might write
    each element just before the copy reads it. Work that fits on the GPU all at once may still be first.
    """
    if not out.is_cuda:
        return torch.clone(out)
    current, ahead = torch.cuda.current_stream(), _ahead(out.device)
    copy = torch.empty_like(out)
    ahead.wait_stream(current)
    with torch.cuda.stream(ahead):
        copy.copy_(out)
    current.wait_stream(ahead)
    return copy


@functools.cache
def _ahead(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device, priority=-1)


def _filled_blocks(sheet: Sheet, byte: int, told: bool) -> list[torch.Tensor]:
    """Blocks of each output's size, filled by work on the current stream; two: for the output, and for a temporary."""
    blocks = []
    for ref in sheet.expected:
        size = ref.numel() * itemsize(ref, sheet.case)
        if size and _worth_filling(size, sheet.device, told):
            blocks += [torch.full((size,), byte, dtype=torch.uint8, device=sheet.device) for _ in range(2)]
    return blocks
