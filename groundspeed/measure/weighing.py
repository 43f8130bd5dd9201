"""What an implementation takes of the device's memory: held between its calls, and held more during one."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from dataclasses import dataclass

from groundspeed.measure.calls import peak_memory
from groundspeed.measure.contender import Prepared
from groundspeed.measure.elsewhere import past_allocator

_MIB = 1 << 20


@dataclass(frozen=True)
class Weight:
    """Bytes above the inputs.

    peak
        Most that a call holds at once above what was there before it; None where nobody counts what its library takes.
    prepared
        What is held between calls.
    remarks
        What must be said beside the two: how much of them torch's allocator did not give.
    """

    peak: int | None
    prepared: int = 0
    remarks: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return (self.peak or 0) + self.prepared


def weigh(prepared: Prepared, device: str) -> Weight:
    """Call it a few times more, and look."""
    contender = prepared.contender
    if contender.opened.own_memory:
        return Weight(None, remarks=(f"peak memory is not measured: {contender.opened.own_memory}",))
    with _counted(prepared):
        seen = peak_memory(prepared.run, device)
        elsewhere = past_allocator(prepared.run, device, seen)
    kept = prepared.kept
    remarks = []
    if elsewhere:
        remarks.append(f"of a call's peak memory torch's allocator did not give {elsewhere / _MIB:.1f} MiB")
    if kept.excess(device):
        remarks.append(f"of what is held since prepare torch's allocator did not give {kept.elsewhere / _MIB:.1f} MiB")
    held = contender.loaded_bytes + kept.counted(device)
    return Weight(seen + elsewhere, held, tuple(remarks))


def _counted(prepared: Prepared) -> AbstractContextManager[None]:
    """Inside, CuPy allocates where torch counts."""
    if prepared.contender.implementation.backend != "cupy":
        return contextlib.nullcontext()
    from groundspeed.backends.cupy_backend import torch_allocator

    return torch_allocator()
