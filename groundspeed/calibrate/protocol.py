"""What a calibration tells one of its processes, and what that tells back, one JSON object a line.

Only one process measures at a time, and nothing is started meanwhile. A process that has its task does its imports,
makes its context, says ``Ready`` and waits for a go. From ``Loading`` to ``Loaded`` it measures nothing, and the next
one may be started; then it waits for another go.
"""

from __future__ import annotations

import msgspec

from groundspeed.calibrate.schema import Clocked, Cost, Missing, Ratio, Reading
from groundspeed.records import Ceilings, Clocks, Environment

GO = b"go\n"


class Task(msgspec.Struct, frozen=True):
    """One process's part: the probes by name, and the peers' methods that it runs; ``rounds`` are of each side.

    beside
        Whether it times by all of our methods and measures ceilings, not only by the one that measurements use.
    """

    device: str
    process: int
    probes: tuple[str, ...]
    peers: tuple[str, ...]
    rounds: int
    beside: bool = True


class Ready(msgspec.Struct, frozen=True, tag=True):
    """Imports and context are made."""

    environment: Environment


class Step(msgspec.Struct, frozen=True, tag=True):
    """A method begins; whatever happens to the process before the next step is its doing."""

    method: str


class Loading(msgspec.Struct, frozen=True, tag=True):
    """Peers are done; what our own timers need is being loaded, and nothing is measured."""


class Loaded(msgspec.Struct, frozen=True, tag=True):
    """Our own timers are there; ``timer`` is the one that times this process's probes."""

    timer: str


class Done(msgspec.Struct, frozen=True, tag=True):
    """All is measured. ``seconds`` splits the wall time, waiting left out."""

    seconds: dict[str, float]
    clocks: Clocks | None = None


class Found(msgspec.Struct, frozen=True, tag=True):
    """Figures, or why there are none."""

    readings: tuple[Reading, ...] = ()
    ratios: tuple[Ratio, ...] = ()
    costs: tuple[Cost, ...] = ()
    ceilings: tuple[Ceilings, ...] = ()
    clocked: tuple[Clocked, ...] = ()
    missing: tuple[Missing, ...] = ()


Event = Ready | Step | Loading | Loaded | Done | Found

_decoder = msgspec.json.Decoder(Event)


def decode_event(line: bytes) -> Event:
    return _decoder.decode(line)
