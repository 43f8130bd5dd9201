"""A lane: one GPU, or the CPU, held for measuring, with the workers that measure on it one after the other."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from groundspeed import nvml
from groundspeed.errors import UserError
from groundspeed.machine import visible_gpus
from groundspeed.measure import neighbours
from groundspeed.measure.claim import Patience, claim
from groundspeed.measure.gpu_state import Gpu
from groundspeed.measure.neighbours import NOBODY, Neighbours
from groundspeed.measure.process import worker_environment
from groundspeed.measure.workers import Workers

VISIBLE = "CUDA_VISIBLE_DEVICES"
UNATTENDED = Patience(3600.0)  # of asv, the gate and the like, which nobody can ask to wait
_AGAIN = 5.0  # seconds between two looks at a GPU that is waited for

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Place:
    """Where a lane may be opened: a GPU under the name the user knows it by, or the CPU, which has neither."""

    gpu: nvml.Gpu | None = None
    label: str = ""

    @property
    def variables(self) -> dict[str, str]:
        """What makes a worker see this GPU alone; by UUID, since CUDA and NVML count in different orders."""
        return {} if self.gpu is None else {VISIBLE: self.gpu.uuid}


CPU = Place()


@dataclass(frozen=True)
class Lane:
    """A place held for measuring.

    watched
        NVML's view of the GPU; None on the CPU and where NVML does not answer.
    """

    place: Place
    workers: Workers
    patience: Patience = field(default_factory=Patience)
    watched: Gpu | None = None

    def before(self, tell: Tell = lambda what: None) -> Neighbours:
        """Who else uses the GPU, before an operator is measured; ``tell`` is called with it in one line.

        With patience it waits until nobody does, and raises GpuBusy when that takes too long.
        """
        if self.watched is None:
            return NOBODY
        seen = neighbours.settled(self.watched)
        began = time.monotonic()
        while seen.present:
            what = f"{self.place.label} is not ours alone: {seen}"
            tell(what)
            if not self.patience.seconds:
                break
            if time.monotonic() - began >= self.patience.seconds:
                raise self.patience.over(what)
            self.workers.check()
            time.sleep(_AGAIN)
            seen = neighbours.settled(self.watched)
        return seen

    def after(self) -> Neighbours:
        """Who else uses it once an operator was measured."""
        return NOBODY if self.watched is None else neighbours.settled(self.watched)


def places(named: str, visible: Sequence[nvml.Gpu]) -> tuple[Place, ...]:
    """The GPUs that ``--gpus`` names: ``all``, or numbers as CUDA counts the visible ones in the order of the bus.

    Raises UserError for one that is not there, one named twice, and GPUs of more than one kind: results are kept by
    the kind of GPU.
    """
    known = {str(number): gpu for number, gpu in enumerate(visible)}
    words = list(known) if named == "all" else [word.strip() for word in named.split(",")]
    for word in words:
        if word not in known:
            there = f"there are {', '.join(known)}" if known else "none is visible"
            raise UserError(f"--gpus {named}: no GPU {word!r}: {there}; type numbers like 0,1, or all")
    if len(set(words)) < len(words) or not words:
        raise UserError(f"--gpus {named}: name each GPU once, like 0,1, or type all")
    kinds = sorted({known[word].name for word in words})
    if len(kinds) > 1:
        raise UserError(f"--gpus {named}: {' and '.join(kinds)} are filed apart; name GPUs of one kind")
    return tuple(Place(known[word], f"GPU {word}") for word in words)


def default_place(device: str) -> Place:
    """Where a run on a device ("cuda" or "cpu") is measured that names no GPU: the first one that is visible."""
    if device != "cuda":
        return CPU
    visible = visible_gpus()
    return Place(visible[0], "GPU 0") if visible else CPU


@contextlib.contextmanager
def hold(place: Place, patience: Patience, tell: Tell = lambda what: None) -> Iterator[None]:
    """Keep other runs off a place until the end. Raises GpuBusy, and UserError when the GPU cannot be locked."""
    if place.gpu is None:
        yield
        return
    with claim(place.gpu.uuid, place.label, patience, tell):
        yield


@contextlib.contextmanager
def open_lane(
    place: Place,
    patience: Patience,
    tell: Tell = lambda what: None,
    *,
    nursery: bool = True,
    compiler: bool = True,
) -> Iterator[Lane]:
    """Hold a place until the end; its workers are forked from a nursery, with the compiler imported, or not.

    Raises GpuBusy, and UserError when the GPU cannot be locked.
    """
    environment = worker_environment(place.variables)
    with hold(place, patience, tell), Workers(environment, compiler, nursery) as workers:
        yield Lane(place, workers, patience, None if place.gpu is None else Gpu.open(place.gpu.uuid))
