"""What a comparison adds to a job: contenders by label, a tolerance of its own, tuning shared by equal kernels."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from groundspeed.measure.bench import Fault
from groundspeed.measure.contender import Contender
from groundspeed.measure.protocol import Job, Side
from groundspeed.operator import Case, Operator, Tolerance

Opened = dict[str, Contender | Fault]


def adopt_tolerance(spec: Operator, tolerance: Mapping[str, tuple[float, float, float]]) -> Operator:
    """The spec with other tolerances for the dtypes named."""
    if not tolerance:
        return spec
    return dataclasses.replace(spec, tolerance={**spec.tolerance, **{d: Tolerance(*t) for d, t in tolerance.items()}})


def takes_part(job: Job, case: Case) -> frozenset[str]:
    """Labels of the contenders that a case is for: all of them, unless a comparison says otherwise."""
    if not job.sides:
        return frozenset(job.implementations)
    return frozenset(side.label for side in job.sides if case.label in side.cases)


def link_tuning(opened: Opened, sides: Sequence[Side]) -> Opened:
    """Let each side that shares its kernels with another know that one."""
    linked = dict(opened)
    for side in sides:
        own, other = linked.get(side.label), linked.get(side.tuned_by)
        if isinstance(own, Contender) and isinstance(other, Contender):
            linked[side.label] = dataclasses.replace(own, tuned_by=other)
    return linked
