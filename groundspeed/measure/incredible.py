"""What a finished measurement may show that no honest one does: somebody else's kernels, no time, and too little."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from groundspeed.analysis.stats import median
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


def no_time(spec: Operator, case: Case, samples: Mapping[str, Sequence[float]]) -> Fault | None:
    """Every call takes some time: whoever says that it took none, or no finite one, has not read a clock.

    ``samples`` are a measurement's, in ns. A case that moves no byte may put no work on the device.
    """
    idle = spec.traffic(case).total == 0
    for quantity, values in samples.items():
        strange = next((value for value in values if not math.isfinite(value)), None)
        if strange is not None:
            return Fault("impossible", f"{quantity}: a time of {strange:g} ns")
        if values and median(values) <= 0 and not (idle and quantity.startswith("device")):
            return Fault("impossible", f"{quantity}: a median of {median(values):g} ns, and every call takes some time")
    return None


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
