"""What a profiler saw: launches of kernels, gathered into kernels, with what the compiler says of each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from groundspeed.kernel_names import instance_name, short_name
from groundspeed.records import KernelResources

Dim3 = tuple[int, int, int]

_LONGEST = 48  # characters of a name


@dataclass(frozen=True)
class Launch:
    """One launch. Bytes and nanoseconds; what the profiler does not know is None.

    shared_bytes
        Of one block, static and dynamic together.
    counters
        What hardware counted, under the keys of ``ncu.METRICS``.
    """

    name: str
    duration_ns: float
    grid: Dim3 | None = None
    block: Dim3 | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    counters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Kernel:
    """All launches of one kernel with one grid.

    launches
        How many there are in one call.
    duration_ns
        Median of one launch.
    spill_bytes
        Bytes of registers that one thread spills, from the compiler; None where it is not known.
    """

    name: str
    launches: float
    duration_ns: float
    grid: Dim3 | None = None
    block: Dim3 | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    spill_bytes: int | None = None
    counters: Mapping[str, float] = field(default_factory=dict)

    @property
    def short(self) -> str:
        """With its template, or without where that would fill a page. What is no C++ function stays as it is."""
        if not re.search(r"[(<]", self.name):
            return self.name if len(self.name) <= _LONGEST else f"{self.name[: _LONGEST - 1]}…"
        whole = instance_name(self.name)
        return whole if len(whole) <= _LONGEST else f"{short_name(self.name)}<…>"

    @property
    def time_ns(self) -> float:
        """Of all its launches in one call."""
        return self.launches * self.duration_ns

    @property
    def threads(self) -> int | None:
        return _product(self.block)

    @property
    def blocks(self) -> int | None:
        return _product(self.grid)


def gather(launches: Sequence[Launch], calls: int) -> tuple[Kernel, ...]:
    """Kernels of ``calls`` calls, those that take most of the time first."""
    groups: dict[tuple[str, Dim3 | None, Dim3 | None], list[Launch]] = {}
    for launch in launches:
        groups.setdefault((launch.name, launch.grid, launch.block), []).append(launch)
    kernels = [_kernel(same, calls) for same in groups.values()]
    return tuple(sorted(kernels, key=lambda kernel: -kernel.time_ns))


def with_resources(kernels: Sequence[Kernel], resources: Sequence[KernelResources]) -> tuple[Kernel, ...]:
    """The same with what the compiler says: spills, and whatever the profiler left open."""
    return tuple(_with_resource(kernel, _resource_of(kernel, resources)) for kernel in kernels)


def _kernel(same: Sequence[Launch], calls: int) -> Kernel:
    first = same[0]
    keys = dict.fromkeys(key for launch in same for key in launch.counters)
    return Kernel(
        name=first.name,
        launches=len(same) / calls,
        duration_ns=median(launch.duration_ns for launch in same),
        grid=first.grid,
        block=first.block,
        registers=first.registers,
        shared_bytes=first.shared_bytes,
        counters={key: median(one.counters[key] for one in same if key in one.counters) for key in keys},
    )


def _resource_of(kernel: Kernel, resources: Sequence[KernelResources]) -> KernelResources | None:
    """By the name with its template, else by the bare name; of several where the registers leave no doubt.

    A call may launch several variants of a Triton kernel, which have one name.
    """
    exact = [one for one in resources if instance_name(one.name) == instance_name(kernel.name)]
    if len(exact) == 1:
        return exact[0]
    alike = exact or [one for one in resources if short_name(one.name) == short_name(kernel.name)]
    if kernel.registers is not None:
        alike = [one for one in alike if one.registers in (0, kernel.registers)]
    same = {(one.registers, one.shared_bytes, one.spill_bytes) for one in alike}
    return alike[0] if len(same) == 1 else None


def _with_resource(kernel: Kernel, found: KernelResources | None) -> Kernel:
    if found is None:
        return kernel
    return replace(
        kernel,
        registers=found.registers if kernel.registers is None else kernel.registers,
        shared_bytes=found.shared_bytes if kernel.shared_bytes is None else kernel.shared_bytes,
        spill_bytes=found.spill_bytes,
    )


def _product(dims: Dim3 | None) -> int | None:
    return None if dims is None else dims[0] * dims[1] * dims[2]
