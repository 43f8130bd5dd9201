"""What an implementation holds between its calls: packed weights, workspaces, a captured graph's memory.

It is no fault to hold any, and no way to hide it: what is made in ``prepare`` and used by each call is memory that the
implementation needs, as much as if the call allocated it.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd import profiler

from groundspeed.measure.referee.heap import held_bytes, reserved_by_graphs

# Bytes outside the allocators that are no data. On a GPU the code of kernels, which the driver loads when one is first
# launched, and handles of libraries; on a CPU what compilers, libraries and the watching itself keep on the C heap
# (torch.compile's first graph: 5 MB).
FREE = {"cuda": 128 << 20, "cpu": 16 << 20}
# Growth over calls that is worth a collection of garbage, and counts where it stays: a C heap grows with everything.
GROWS = {"cuda": 1, "cpu": 1 << 20}
_TELLING = 64 << 10  # the same of a C heap over prepare and the first run


@dataclass(frozen=True)
class Kept:
    """Bytes held from before one moment to another.

    allocated
        By torch's allocator, on a GPU by CuPy's too.
    elsewhere
        What the device or the C heap gave away besides.
    """

    allocated: int = 0
    elsewhere: int = 0

    def counted(self, device: str) -> int:
        """What counts as the implementation's memory."""
        return self.allocated + self.excess(device)

    def excess(self, device: str) -> int:
        """What of it no code that was loaded accounts for."""
        return max(0, self.elsewhere - FREE[device])


NOTHING = Kept()


@dataclass
class Keeping:
    """Says what was kept, once it is over."""

    kept: Kept = NOTHING


@contextlib.contextmanager
def keeping(device: str) -> Iterator[Keeping]:
    """Watch what is held afterwards that was not held before. Garbage is collected where there may be some."""
    found = Keeping()
    if device == "cuda":
        if reserved_by_graphs():
            torch.cuda.empty_cache()  # pools of graphs that are gone: the next capture would give them back
        before = _on_gpu()
        yield found
        after = _on_gpu()
        if after.allocated > before.allocated:
            gc.collect()
            after = _on_gpu()
        found.kept = _grown(before, after)
        return
    # torch's profiler sees each allocation and release of its CPU allocator. It takes some 20 µs an operation, which
    # no prepare is made of; a compilation does not notice it.
    with profiler.profile(use_cpu=True, profile_memory=True) as session:
        heap = held_bytes("cpu") or 0
        yield found
        if (held_bytes("cpu") or 0) - heap >= _TELLING:
            gc.collect()
        grown = max(0, (held_bytes("cpu") or 0) - heap)
    allocated = max(0, sum(nbytes(session)))
    found.kept = Kept(allocated, max(0, grown - allocated))


def nbytes(session: Any) -> Iterable[int]:
    """What torch's CPU allocator gave, or took back (negative), while the profiler watched it, in order."""
    events = sorted(session.kineto_results.events(), key=lambda event: event.start_ns())
    return [event.nbytes() for event in events if event.name() == "[memory]"]


def elsewhere_on_gpu() -> int:
    """Bytes in use on the device that neither torch's nor CuPy's allocator holds: the driver's, other processes'."""
    free, total = torch.cuda.mem_get_info()
    cupy = sys.modules.get("cupy")
    pooled = int(cupy.get_default_memory_pool().total_bytes()) if cupy else 0
    return int(total - free) - int(torch.cuda.memory_reserved()) - pooled


def take_workspaces(device: str) -> None:
    """Let torch allocate what its matrix products share, once a process: it is no implementation's own.

    Else whichever multiplies first would be said to keep it, 32 MiB on an H200; operators bound by memory do as well.
    """
    if device == "cuda":
        _multiply()


@functools.cache
def _multiply() -> None:
    small = torch.zeros(16, 16, dtype=torch.float16, device="cuda")
    torch.mm(small, small)  # cuBLAS
    torch.addmm(small[0], small, small)  # cuBLASLt
    torch.cuda.synchronize()


def _on_gpu() -> Kept:
    return Kept(held_bytes("cuda") or 0, elsewhere_on_gpu())


def _grown(before: Kept, after: Kept) -> Kept:
    return Kept(max(0, after.allocated - before.allocated), max(0, after.elsewhere - before.elsewhere))
