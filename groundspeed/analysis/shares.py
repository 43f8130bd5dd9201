"""What the time of one call goes to: to which part of an operator, and to memory, to launches or to computing.

A call is taken apart into the operations that it issues, each with the time of its kernels, the bytes that it reads and
writes and the FLOPs that it does. Parts are summed over operations. For the second question

    launch   is the wall time of a synchronised call less the time for which the device was busy,
    memory   is the time of the operations whose bytes take longer at the measured bandwidth (``memory_time`` of
             ``roofline``: what pairs up at the copy rate) than their FLOPs at the measured matmul rate,
    compute  is that of the others.

An operation is of one kind as a whole: a product that also moves bytes counts as computing for all of its time, however
far from either ceiling it stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from groundspeed.analysis.roofline import compute_time, memory_time
from groundspeed.records import Ceilings

OTHER = "other"
Kind = Literal["memory", "compute"]


@dataclass(frozen=True)
class Operation:
    """One operation of a call: nanoseconds of its kernels, bytes, FLOPs, and the part of the operator it is of."""

    part: str
    name: str
    ns: float
    flops: int
    bytes_read: int
    bytes_written: int


@dataclass(frozen=True)
class Share:
    """Nanoseconds, and their fraction of the whole."""

    label: str
    ns: float
    fraction: float


def kind(operation: Operation, ceilings: Ceilings, dtype: str) -> Kind:
    """Which ceiling is nearer to it. What does no FLOPs that a ceiling is known for is bound by memory."""
    moving = memory_time(ceilings, operation.bytes_read, operation.bytes_written) or 0.0
    computing = compute_time(ceilings, dtype, operation.flops) or 0.0
    return "compute" if computing > moving else "memory"


def least_ns(operation: Operation, ceilings: Ceilings, dtype: str) -> float:
    """The least time that its ceiling allows, 0 where neither is known."""
    moving = memory_time(ceilings, operation.bytes_read, operation.bytes_written) or 0.0
    return max(moving, compute_time(ceilings, dtype, operation.flops) or 0.0)


def busy(operations: Iterable[Operation]) -> float:
    """Nanoseconds for which the device worked."""
    return sum(operation.ns for operation in operations)


def by_part(operations: Sequence[Operation], parts: Sequence[str]) -> list[Share]:
    """A share of the busy time for each part, in the order given, and for what is of none of them."""
    whole = busy(operations)
    known = set(parts)
    labels = [*parts, OTHER]
    sums = dict.fromkeys(labels, 0.0)
    for operation in operations:
        sums[operation.part if operation.part in known else OTHER] += operation.ns
    return [Share(label, sums[label], sums[label] / whole if whole else 0.0) for label in labels]


def by_kind(operations: Sequence[Operation], call_ns: float, ceilings: Ceilings, dtype: str) -> list[Share]:
    """Memory, launch and compute: their times add up to the call's, or to the busy time where that is longer."""
    sums = {"memory": 0.0, "launch": max(0.0, call_ns - busy(operations)), "compute": 0.0}
    for operation in operations:
        sums[kind(operation, ceilings, dtype)] += operation.ns
    whole = sum(sums.values())
    return [Share(label, ns, ns / whole if whole else 0.0) for label, ns in sums.items()]
