"""What a finished measurement may show that no honest one does: somebody else's kernels, and a speed beyond physics."""

from __future__ import annotations

from collections.abc import Sequence

from groundspeed.measure import referee
from groundspeed.measure.bench import Fault
from groundspeed.measure.datasheet import Peak
from groundspeed.operator import Case, Operator


def foreign_kernel(kernels: Sequence[str], own: frozenset[str] | None) -> str:
    """What is wrong with the kernels of a call: ``cuda_*`` and ``triton_*`` launch their own; "" where nothing is.

    Copies and sets by the driver are free. ``own`` are the words by which its own are known, None where any may run.
    """
    stranger = "" if own is None else referee.foreign_kernel(kernels, own)
    if own is None or not stranger:
        return ""
    return f"own kernel: launches {stranger[:120]}, expected one of {', '.join(sorted(own))}"


def too_fast(spec: Operator, case: Case, middle_ns: float, top: Peak | None, l2_bytes: int) -> Fault | None:
    """Faster than a GPU's data sheet allows, where that is known."""
    if top is None or middle_ns <= 0:
        return None
    traffic = spec.traffic(case)
    reason = referee.impossible(
        traffic.read,
        traffic.write,
        l2_bytes,
        spec.fewest_flop_count(case),
        middle_ns,
        top.bandwidth,
        top.flops.get(case.dtype, 0.0),
    )
    return Fault("impossible", reason) if reason else None
