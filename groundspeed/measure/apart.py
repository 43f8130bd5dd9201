"""Which implementations of a job must not share a worker: those of a library that changes torch for its whole process.

Each such library has a worker to itself, beside the one that all others share. Its rounds are then no other's, so its
rows say that they are ``apart``: their ratio to the baseline is one of medians.
"""

from __future__ import annotations

import msgspec

from groundspeed.backends.libraries import LIBRARIES
from groundspeed.measure.protocol import Job


def parts(job: Job) -> tuple[Job, ...]:
    """The job in as many as it takes workers at once, what shares a worker first; one job where nothing is apart."""
    groups: dict[str, list[str]] = {"": []}
    implementations = {side.label: side.implementation for side in job.sides}
    for label in job.implementations:
        groups.setdefault(_lonely(implementations.get(label, label)), []).append(label)
    filled = [tuple(labels) for labels in groups.values() if labels]
    if len(filled) <= 1:
        return (job,)
    return tuple(msgspec.structs.replace(job, implementations=labels) for labels in filled)


def is_apart(implementation: str) -> bool:
    return bool(_lonely(implementation))


def _lonely(implementation: str) -> str:
    """The back end that it cannot share with another, or nothing."""
    backend = implementation.partition("_")[0]
    return backend if backend in LIBRARIES and LIBRARIES[backend].alone else ""
