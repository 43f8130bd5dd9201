"""When there is a rehearsal: on a GPU, with cores and work for several workers, and with nobody else at work there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from groundspeed.backends.triton_backend import interpreting
from groundspeed.cores import usable_cores
from groundspeed.measure.claim import GpuBusy
from groundspeed.measure.lane import Lane, Place
from groundspeed.rehearsal.parts import Part, parts_of
from groundspeed.session import Run

_FEWEST_CORES = 4  # with fewer there is nothing to gain


def worthwhile(runs: Mapping[str, Run], place: Place) -> list[Part]:
    """What doing side by side beforehand takes less time than each part in its turn; nothing on a CPU."""
    if place.gpu is None or usable_cores() < _FEWEST_CORES or interpreting():
        return []
    parts = parts_of(runs, place.gpu.name)
    return parts if len(parts) > 1 else []


def undisturbed(lanes: Sequence[Lane], say: Callable[[str], None]) -> bool:
    """Whether nobody else works on the GPUs; ``say`` is told who does. An autotuner's choice stays for good.

    Raises GpuBusy where somebody is still there after as long as the one lane is ready to wait.
    """
    try:
        disturbed = any(lane.before(say).working for lane in lanes)
    except GpuBusy:
        if len(lanes) == 1:
            raise
        return False  # the others measure what this one would have
    if not disturbed:
        return True
    say("nothing is compiled and tuned beforehand: autotuners would choose by times that others disturb")
    return False
