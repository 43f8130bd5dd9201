"""The driver of a fleet: hands pieces out, gathers what comes of them, and begins again what was lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol

from groundspeed.errors import UserError
from groundspeed.fleet.agreement import differs, disagreements, odd_hosts
from groundspeed.fleet.dispatch import Dispatch, Move
from groundspeed.fleet.ledger import Ledger, Outcome
from groundspeed.fleet.work import About, Ended, Finished, Happening, Look, Lost, Opened, Piece, Stations

POLL = 0.2  # seconds
FIRST = 60.0  # seconds for which a first station is waited for
SETTLE = 15.0  # seconds after one has come for which the next is waited for before the first piece is handed out
_EMPTY = 45.0  # seconds for which a fleet without any station is waited for once it had some


class FleetLost(UserError):
    """No station is left."""


class HeadLost(UserError):
    """Whatever holds the stations together does not answer any more."""


class Work(Protocol):
    """What the driver gathers for."""

    def pieces(self, about: About) -> Iterable[Piece]:
        """What is to be done on a machine, asked once when its first station is there. Raises UserError."""

    def is_done(self, piece: Piece) -> bool:
        """Whether somebody else has done it meanwhile."""

    def keep(self, piece: Piece, result: object) -> bool:
        """Store what came of a piece; False when it was there already."""


class Watching(Protocol):
    """Whoever shows how far it is."""

    def station(self, about: About, total: int) -> None: ...

    def begun(self, piece: Piece, about: About) -> None: ...

    def ended(self, piece: Piece, about: About, said: str) -> None: ...

    def say(self, line: str) -> None: ...

    def draw(self, dispatch: Dispatch, stations: Sequence[About], looks: dict[str, Look]) -> None: ...


@dataclass
class _Seat:
    """A station that is there."""

    about: About
    since: float
    busy: float = 0.0
    began: float = 0.0


@dataclass(frozen=True)
class Limits:
    """Seconds. ``first`` is how long a fleet of which nothing is free is waited for."""

    first: float = FIRST
    settle: float = SETTLE
    empty: float = _EMPTY


@dataclass
class Result:
    """What a driver leaves besides what it kept.

    makespan
        Seconds from the first piece that was handed out to the last that ended.
    """

    problems: dict[tuple[str, str], str]
    moves: list[Move]
    remarks: list[str] = field(default_factory=list)
    stations: list[About] = field(default_factory=list)
    makespan: float = 0.0


class Driver:
    """One run of a fleet's work, from the first station to the last piece."""

    def __init__(
        self,
        stations: Stations,
        work: Work,
        ledger: Ledger,
        watching: Watching,
        limits: Limits = Limits(),
        now: Callable[[], float] = monotonic,
    ) -> None:
        self._stations, self._work, self._ledger, self._watching = stations, work, ledger, watching
        self._limits, self._now = limits, now
        self._seats: dict[str, _Seat] = {}
        self._dispatch = Dispatch()
        self._machines: set[str] = set()
        self._retired: dict[str, str] = {}  # seat -> why
        self._remarks: list[str] = []
        self._met: list[About] = []
        self._given_back: set[str] = set()

    def run(self) -> Result:
        """Do it all. Raises UserError before any piece is handed out when the stations do not agree, when none comes,
        and FleetLost when none is left; what was kept stays.
        """
        try:
            self._assemble()
            began = self._now()
            empty_since: float | None = None
            while True:
                self._hand_out()
                if self._dispatch.finished:
                    ended = self._now()
                    break
                self._take_all(self._stations.poll(POLL))
                empty_since = None if self._seats else (empty_since or self._now())
                if empty_since is not None and self._now() - empty_since > self._limits.empty:
                    raise FleetLost(f"no station is left: {self._why_none()}")
                self._abandon_machines()
                self._give_back()
                self._draw()
        finally:
            self._settle_accounts()
        dispatch = self._dispatch
        return Result(dispatch.problems, dispatch.moves, self._remarks, self._met, ended - began)

    # assembling

    def _assemble(self) -> None:
        """Wait until all stations are there, or no more come; then see whether they agree."""
        began = latest = self._now()
        while True:
            for happening in self._stations.poll(POLL):
                self._meet(happening)
                latest = self._now()
            waited = self._now() - began
            if self._seats and (not self._stations.waiting() or self._now() - latest >= self._limits.settle):
                break
            if not self._seats and waited >= self._limits.first:
                raise UserError(f"no GPU of the fleet was free within {waited:.0f} s{self._why_none(': ')}")
        abouts = [seat.about for seat in self._seats.values()]
        wrong = disagreements(abouts)
        if wrong:
            without = " ".join(f"--fleet-without {host}" for host in odd_hosts(abouts))
            raise UserError(f"{'; '.join(wrong)}; nothing was measured: mend that, or add {without}")
        for about in abouts:
            self._welcome(about)

    def _meet(self, happening: Happening) -> None:
        match happening:
            case Opened(seat, about):
                self._seats[seat] = _Seat(about, self._now())
            case Lost(seat, why):
                self._seats.pop(seat, None)
                self._retired[seat] = why

    def _welcome(self, about: About) -> None:
        self._met.append(about)
        if about.machine not in self._machines:
            self._machines.add(about.machine)
            self._dispatch.add(self._work.pieces(about))
        self._watching.station(about, len(self._seats))

    # working

    def _take_all(self, happenings: Iterable[Happening]) -> None:
        for happening in happenings:
            match happening:
                case Opened(seat, about):
                    self._join(seat, about)
                case Finished(seat, ended) if seat in self._seats:
                    self._finish(seat, ended)
                case Lost(seat, why, node_left):
                    self._lose(seat, why, node_left)
                case _:
                    pass  # of a seat that was lost before

    def _join(self, seat: str, about: About) -> None:
        """A station that came late, or came back."""
        met = [one for one in self._met if one.machine == about.machine]
        why = about.problem or differs(about, met)
        if why:
            self._remark(f"{about.label} is left out: {why}")
            self._retire(seat, why)
            return
        self._seats[seat] = _Seat(about, self._now())
        self._welcome(about)

    def _finish(self, seat: str, ended: Ended) -> None:
        place = self._seats[seat]
        piece = self._dispatch.running[seat]
        place.busy += self._now() - place.began
        if ended.ending == "ok":
            try:
                added = self._work.keep(piece, ended.result)
            except UserError as error:
                self._dispatch.give_up(seat, str(error))
                self._spend(place, piece, ended.seconds, "problem", str(error))
                self._watching.ended(piece, place.about, "could not be kept")
                return
            self._dispatch.end(seat)
            self._spend(place, piece, ended.seconds, "kept" if added else "duplicate")
            self._watching.ended(piece, place.about, "measured" if added else "was measured elsewhere meanwhile")
        elif ended.ending == "problem":
            self._dispatch.give_up(seat, ended.reason)
            self._spend(place, piece, ended.seconds, "problem", ended.reason)
            self._watching.ended(piece, place.about, "could not be measured")
        else:
            unfit = ended.ending == "unfit"
            self._dispatch.again(seat, place.about.label, ended.reason, its_fault=not unfit)
            self._spend(place, piece, ended.seconds, "unfit" if unfit else "raised", ended.reason)
            self._watching.ended(piece, place.about, f"to be measured elsewhere: {ended.reason}")
            if unfit:
                self._seats.pop(seat)
                self._idle(place)
                self._retire(seat, ended.reason)

    def _lose(self, seat: str, why: str, node_left: bool) -> None:
        place = self._seats.pop(seat, None)
        if place is None:
            return
        piece = self._dispatch.running.get(seat)
        if piece is not None:
            spent = self._now() - place.began
            place.busy += spent
            self._dispatch.again(seat, place.about.label, why, its_fault=not node_left)
            self._spend(place, piece, spent, "left" if node_left else "died", why)
            self._watching.ended(piece, place.about, f"to be measured elsewhere: {why}")
        else:
            self._watching.say(f"{place.about.label} is gone: {why}")
        self._idle(place)

    def _hand_out(self) -> None:
        busy = self._dispatch.running
        for seat, place in self._seats.items():
            if seat in busy:
                continue
            others = [one.about.label for one in self._seats.values() if one.about.machine == place.about.machine]
            while (piece := self._dispatch.take(seat, place.about.machine, place.about.label, others)) is not None:
                if not self._work.is_done(piece):
                    place.began = self._now()
                    self._stations.begin(seat, piece)
                    self._watching.begun(piece, place.about)
                    break
                self._dispatch.skip(piece)
                self._watching.say(f"{piece.name}: already measured on {piece.machine}")

    def _give_back(self) -> None:
        """GPUs for which there is nothing left to do, but for one that is kept while something may still be lost."""
        waiting = {piece.machine for piece in self._dispatch.waiting}
        running = self._dispatch.running
        at_work = {piece.machine for piece in running.values()}
        idle = [(seat, place) for seat, place in self._seats.items() if seat not in running]
        if waiting & self._given_back:
            self._given_back.clear()
            self._stations.recall()
        if waiting:
            return
        spared: set[str] = set()
        for seat, place in idle:
            machine = place.about.machine
            if machine in at_work and machine not in spared:
                spared.add(machine)
                continue
            del self._seats[seat]
            self._given_back.add(machine)
            self._idle(place)
            self._stations.release(seat)

    def _retire(self, seat: str, why: str) -> None:
        self._retired[seat] = why
        self._stations.retire(seat)

    def _abandon_machines(self) -> None:
        """A machine of which no station is left while others go on must not be waited for forever."""
        if self._stations.waiting() or not self._seats:
            return
        alive = {place.about.machine for place in self._seats.values()}
        for machine in self._machines - alive:
            self._dispatch.abandon(machine, f"no {machine} is left: {self._why_none()}")

    # telling

    def _draw(self) -> None:
        self._watching.draw(self._dispatch, [place.about for place in self._seats.values()], self._stations.looks())

    def _remark(self, line: str) -> None:
        self._remarks.append(line)
        self._watching.say(line)

    def _why_none(self, before: str = "") -> str:
        reasons = dict.fromkeys(self._retired.values())
        return before + ("; ".join(reasons) if reasons else "all of them are gone, or others'")

    def _spend(self, place: _Seat, piece: Piece, seconds: float, outcome: Outcome, why: str = "") -> None:
        self._ledger.add(piece.machine, piece.name, place.about.place, seconds, outcome, why)

    def _idle(self, place: _Seat) -> None:
        idle = self._now() - place.since - place.busy
        if idle >= 0.001:
            self._ledger.add(place.about.machine, "", place.about.place, idle, "idle")

    def _settle_accounts(self) -> None:
        for seat, place in self._seats.items():
            piece = self._dispatch.running.get(seat)
            if piece is not None:
                spent = self._now() - place.began
                place.busy += spent
                self._spend(place, piece, spent, "stopped")
            self._idle(place)
