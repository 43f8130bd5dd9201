"""How many processor cores there are for this process."""

from __future__ import annotations

import os

CORES_BESIDE_OTHERS = 4  # what one of several processes that compile side by side takes at once


def usable_cores() -> int:
    """Those that it may run on: a batch system or ``taskset`` may leave it fewer than the host has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
