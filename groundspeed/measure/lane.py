"""A lane: one GPU, or the CPU, held for measuring, with the workers that measure on it one after the other.

An operator that is spread over several GPUs has a lane that holds all of them: nobody else measures on any meanwhile.
"""

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
    """Where a lane may be opened: a GPU under the name the user knows it by, or the CPU, which has neither.

    ``beside`` are the further GPUs of a lane over several.
    """

    gpu: nvml.Gpu | None = None
    label: str = ""
    beside: tuple[nvml.Gpu, ...] = ()

    @property
    def gpus(self) -> tuple[nvml.Gpu, ...]:
        return () if self.gpu is None else (self.gpu, *self.beside)

    @property
    def variables(self) -> dict[str, str]:
        """What makes a worker see these GPUs alone; by UUID, since CUDA and NVML count in different orders."""
        return {} if self.gpu is None else {VISIBLE: ",".join(gpu.uuid for gpu in self.gpus)}


CPU = Place()


@dataclass(frozen=True)
class Lane:
    """A place held for measuring.

    watched
        NVML's view of the GPU; None on the CPU and where NVML does not answer.
    beside
        The same of the further GPUs of a lane over several.
    """

    place: Place
    workers: Workers
    patience: Patience = field(default_factory=Patience)
    watched: Gpu | None = None
    beside: tuple[Gpu, ...] = ()

    def before(self, tell: Tell = lambda what: None) -> Neighbours:
        """Who else uses the GPU, before an operator is measured; ``tell`` is called with it in one line.

        With patience it waits until nobody does, and raises GpuBusy when that takes too long.
        """
        seen = self.after()
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
            seen = self.after()
        return seen

    def after(self) -> Neighbours:
        """Who else uses it once an operator was measured."""
        seen = NOBODY
        for gpu in (self.watched, *self.beside) if self.watched is not None else ():
            seen = seen.worse(neighbours.settled(gpu))
        return seen


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


def spread(parts: Sequence[Place]) -> Place:
    """One place of several: all their GPUs, for an operator that is spread over them."""
    first, *others = parts
    if not others:
        return first
    numbers = [one.label.removeprefix("GPU ") for one in parts]
    label = f"GPUs {', '.join(numbers[:-1])} and {numbers[-1]}"
    return Place(first.gpu, label, tuple(one.gpu for one in others if one.gpu is not None))


def widest_place(device: str) -> Place:
    """Where an operator that is spread over GPUs is measured by a run that names none: on all that are visible."""
    visible = visible_gpus() if device == "cuda" else ()
    return spread(places("all", visible)) if visible else CPU


@contextlib.contextmanager
def hold(place: Place, patience: Patience, tell: Tell = lambda what: None) -> Iterator[None]:
    """Keep other runs off a place until the end. Raises GpuBusy, and UserError when the GPU cannot be locked."""
    with contextlib.ExitStack() as held:
        # In one order whoever asks: two runs that wait for each other's GPU would wait for ever.
        for gpu in sorted(place.gpus, key=lambda gpu: gpu.uuid):
            held.enter_context(claim(gpu.uuid, place.label, patience, tell))
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
        first, *others = [Gpu.open(gpu.uuid) for gpu in place.gpus] or [None]
        yield Lane(place, workers, patience, first, tuple(gpu for gpu in others if gpu is not None))
