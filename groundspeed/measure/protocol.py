"""What the supervisor tells a worker, and what a worker tells back, one JSON object a line."""

from __future__ import annotations

from typing import BinaryIO

import msgspec

from groundspeed.operator import Case
from groundspeed.records import Ceilings, Environment, Failure, Measurement


class Side(msgspec.Struct, frozen=True):
    """A contender of a comparison: an implementation of a tree of its own, under a label of its own.

    ``cases`` are the labels of those of the job's cases that it takes part in.
    """

    label: str
    tree: str
    package: str
    implementation: str
    cases: tuple[str, ...]


class Job(msgspec.Struct, frozen=True):
    """One operator's work for one worker.

    cases
        (dtype, shape) pairs still to do. ``implementations`` are names; ``excluded`` maps some of them to the reason
        why they are not run again.
    solo
        Before the first case is measured, measure each implementation alone on it: one that kills the worker while
        all are timed together is then known. What was learnt alone is not kept, since it is paired with nothing.
    check_only
        Judge, and measure nothing.
    turns
        Prepare and run once, and neither judge nor measure (groundspeed.measure.rehearsal): the file by whose lock the
        autotuners of such workers take turns on the GPU. "" for all other jobs.
    sides
        In a comparison, the contenders instead of ``implementations`` of ``tree``; then ``implementations`` are their
        labels.
    rounds
        Take just so many rounds instead of stopping when the interval is narrow; 0 stops by the interval.
    tolerance
        (rtol, atol, norm) by dtype in place of the spec's.
    limits
        Seconds a phase may be silent before it counts as hung, by its name, in place of the worker's own.
    seconds
        Wall time of timed rounds allowed for each implementation of a case.
    vouched
        The referee has passed these very files in an earlier process: one sitting before the rounds will do.
    tunings
        A folder in which what autotuners learn is kept for other sides and processes; "" keeps it nowhere.
    timer
        One of selection.TIMERS, or empty for the device's usual one.
    energy
        Numbers of the cases in which is measured what a call takes of it, after everything else.
    """

    operator: str
    tree: str
    specs: str
    device: str
    implementations: tuple[str, ...]
    cases: tuple[tuple[str, tuple[tuple[str, int | str], ...]], ...]
    excluded: dict[str, str] = {}
    solo: bool = False
    check_only: bool = False
    turns: str = ""
    sides: tuple[Side, ...] = ()
    rounds: int = 0
    tolerance: dict[str, tuple[float, float, float]] = {}
    limits: dict[str, float] = {}
    seconds: float = 0.4
    seed: int = 0
    vouched: bool = False
    tunings: str = ""
    timer: str = ""
    energy: tuple[int, ...] = ()

    def case_list(self) -> list[Case]:
        return [Case(dtype, tuple((name, value) for name, value in shape)) for dtype, shape in self.cases]


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The worker is up."""

    environment: Environment
    ceilings: Ceilings | None = None


class Phase(msgspec.Struct, frozen=True, tag=True):
    """The worker begins something. Hearing nothing for ``limit`` seconds after it means that it hangs."""

    name: str
    limit: float
    case: int = -1
    implementation: str = ""


class Row(msgspec.Struct, frozen=True, tag=True):
    """A finished measurement, skipped and failed ones included."""

    case: int
    measurement: Measurement


class CaseDone(msgspec.Struct, frozen=True, tag=True):
    """All rows of a case have been sent."""

    case: int


class Dying(msgspec.Struct, frozen=True, tag=True):
    """The worker ends, and this is why: the device's context is lost (an illegal access), or there is no such job.

    ``failure`` is an error where an implementation was refused and has left the process unfit for the others.
    """

    reason: str
    failure: Failure = "crash"


class FirstCallTimed(msgspec.Struct, frozen=True, tag=True):
    """The one result of a process that measures a first call. Nanoseconds."""

    load_ns: float
    prepare_ns: float
    run_ns: float


class Done(msgspec.Struct, frozen=True, tag=True):
    """All cases are done. ``seconds`` splits the wall time by phase."""

    seconds: dict[str, float]


Event = Ready | Phase | Row | CaseDone | Dying | FirstCallTimed | Done

_decoder = msgspec.json.Decoder(Event)


def decode_event(line: bytes) -> Event:
    return _decoder.decode(line)


class Channel:
    """The worker's end: events out, flushed one by one, since the next moment may be the last."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def send(self, event: Event) -> None:
        self._stream.write(msgspec.json.encode(event) + b"\n")
        self._stream.flush()


class Teller:
    """Tells the supervisor which phase of which case begins.

    case
        Number of the case at hand, -1 before the first.
    alone
        The only implementation that is being measured, when there is but one: whatever happens then is its doing.
    phase
        The phase that began last.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.case = -1
        self.alone = ""
        self._last: Phase | None = None

    @property
    def phase(self) -> str:
        return self._last.name if self._last is not None else ""

    def begin(self, phase: str, limit: float, implementation: str = "") -> None:
        named = implementation or ("" if phase == "inputs" else self.alone)
        self._last = Phase(phase, limit, self.case, named)
        self._channel.send(self._last)

    def again(self) -> None:
        """Give a sign of life: the phase that began last goes on."""
        if self._last is not None:
            self._channel.send(self._last)
