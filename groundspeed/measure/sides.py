"""What a comparison adds to a job: contenders by label, a tolerance of its own, tunings shared by equal code."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from groundspeed.measure.bench import Fault
from groundspeed.measure.contender import Contender
from groundspeed.measure.protocol import Job
from groundspeed.measure.tunings import Tunings
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


def share_tunings(opened: Opened, folder: str) -> Opened:
    """Let all contenders share what autotuners learn in a folder; "" lets each learn for itself."""
    if not folder:
        return opened
    tunings = Tunings(Path(folder))
    return {
        label: dataclasses.replace(one, tunings=tunings) if isinstance(one, Contender) else one
        for label, one in opened.items()
    }
