"""How fast a device could have done it: the least time that measured ceilings allow.

The model is the roofline (Williams, Waterman, Patterson, CACM 2009) with one refinement: the bandwidth ceiling is that
of the operator's own mix of reads and writes, because devices read and write at different rates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from groundspeed.records import Ceilings


@dataclass(frozen=True)
class Ceiling:
    """The least time for a piece of work in ns, and which ceiling sets it."""

    least_ns: float
    bound: Literal["memory", "compute", "link", "peer"]


def memory_time(ceilings: Ceilings, bytes_read: int, bytes_written: int) -> float | None:
    """ns to move that many bytes: what pairs up as read and written at the copy rate, the rest at its own.

    Adding up the times of reading and of writing alone would promise more than there is: DRAM loses time turning from
    one to the other (on an H200 a copy moves 4.28 TB/s where reads alone reach 4.62 and writes alone 4.72). That sum
    is used where no copy was measured.

    None where a rate that is needed was not measured, or nothing is moved.
    """
    paired = min(bytes_read, bytes_written) if ceilings.copy > 0 else 0
    seconds = 2 * paired / ceilings.copy if paired else 0.0
    for size, rate in ((bytes_read - paired, ceilings.read), (bytes_written - paired, ceilings.write)):
        if size and rate <= 0:
            return None
        seconds += size / rate if size else 0.0
    return seconds * 1e9 or None


def compute_time(ceilings: Ceilings, dtype: str, flops: int) -> float | None:
    """ns to do that many operations at the matmul rate measured for the dtype; None where it was not measured."""
    rate = ceilings.matmul.get(dtype, 0.0)
    return flops / rate * 1e9 if flops and rate > 0 else None


def ceiling(
    ceilings: Ceilings | None, bound: str, dtype: str, flops: int, traffic: tuple[int, int], bus_bytes: int = 0
) -> Ceiling | None:
    """The later of the memory time and the compute time of (bytes read, bytes written) and flops.

    ``bound`` is the operator's own. A compute-bound operator without a measured matmul rate has no ceiling, rather than
    a bandwidth ceiling that it could never be near; nor has one bound by the link from the host, which must bring all
    that is read, without a measured rate of that. Where ``bus_bytes`` must pass from GPU to GPU, an operator bound by
    that has the rate of copies both ways as its ceiling, or none; a case on one GPU has the memory's.
    """
    if ceilings is None:
        return None
    if bound == "peer" and bus_bytes:
        return Ceiling(bus_bytes / ceilings.peer * 1e9, "peer") if ceilings.peer > 0 else None
    if bound == "link":
        read = traffic[0]
        return Ceiling(read / ceilings.link * 1e9, "link") if read and ceilings.link > 0 else None
    memory = memory_time(ceilings, *traffic)
    compute = compute_time(ceilings, dtype, flops)
    if compute is None and bound == "compute":
        return None
    if compute is not None and (memory is None or compute > memory):
        return Ceiling(compute, "compute")
    return None if memory is None else Ceiling(memory, "memory")
