"""What torch.compile has done in this process, asked without importing it.

Its front end, torch._dynamo, takes seconds to import, and its reset imports its back end, Inductor, where there is a
GPU: seconds for each operator, lost where nothing is ever compiled. torch.compile imports the front end when it is
called, so whoever finds it among the modules finds whatever was compiled, and where it is not nothing was.
"""

from __future__ import annotations

import sys
from types import ModuleType

_FRONT = "torch._dynamo"
_BACK = "torch._inductor.cudagraph_trees"  # what the reset imports


def reset() -> None:
    """Forget all that was compiled: a case begins as in a process that has compiled nothing."""
    front = sys.modules.get(_FRONT)
    # Others import the front end too, to compile nothing. Where the back end lies already there is nothing to save.
    if front is not None and (_BACK in sys.modules or _has_worked(front)):
        front.reset()


def count() -> int:
    """Graphs that torch.compile has compiled in this process."""
    front = sys.modules.get(_FRONT)
    return int(front.utils.counters["stats"]["unique_graphs"]) if front is not None else 0


def _has_worked(front: ModuleType) -> bool:
    """Whether it has counted anything, if only a function that it looked at: its reset leaves these counters alone."""
    return any(front.utils.counters.values())
