"""How many processor cores there are for this process, and how many threads use them."""

from __future__ import annotations

import os

CORES_BESIDE_OTHERS = 4  # what one of several processes that compile side by side takes at once


def usable_cores() -> int:
    """Those that it may run on: a batch system or ``taskset`` may leave it fewer than the host has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_threads() -> int:
    """How many threads an operator on the CPU gets: what ``OMP_NUM_THREADS`` says, else one a usable core.

    The variable may be a list with a number for each level of nested regions: the first is for the outermost.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(asked) if asked.isascii() and asked.isdigit() and int(asked) > 0 else usable_cores()
