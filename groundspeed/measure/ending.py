"""A process of the harness ends with the one that started it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG, <linux/prctl.h>


def end_with(parent: int) -> None:
    """Die when the parent does, however it dies: a worker of no one would hold the device and disturb the next run."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it died before this took hold
