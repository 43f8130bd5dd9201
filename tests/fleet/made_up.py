"""A fleet without Ray: stations that a test scripts, a clock of its own, and a store in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from groundspeed.fleet.driver import Driver, Limits
from groundspeed.fleet.ledger import Ledger
from groundspeed.fleet.work import About, Ended, Finished, Look, Lost, Opened, Piece

LIMITS = Limits(first=5.0, settle=2.0, empty=3.0)


def about(name, machine="nvidia-a", **more):
    fields = {"driver": "580", "torch": "2.11", "python": "3.12", **more}
    return About(host=f"host-{name}", machine=machine, place=f"gpu-{name}", label=f"host-{name} GPU 0", **fields)


@dataclass
class Stations:
    """Each poll takes a tenth of a second. ``fates`` says what becomes of an operator at a seat, else it succeeds.

    A fate is an Ended, or the reason for which the station is lost; "node" in it means that its node left.
    """

    abouts: dict
    fates: dict = field(default_factory=dict)  # (seat, operator) -> fate, used once
    always: dict = field(default_factory=dict)  # operator -> fate, everywhere and again
    comes_back: bool = True  # a station that was lost, unless its node left
    late: dict = field(default_factory=dict)  # seat -> second at which its station comes
    clock: float = 0.0
    working: dict = field(default_factory=dict)  # seat -> (piece, when it ends)
    log: list = field(default_factory=list)  # (seat, operator)
    retired: list = field(default_factory=list)
    released: list = field(default_factory=list)
    recalled: int = 0
    closed: bool = False

    def __post_init__(self):
        self.coming = {seat: self.late.get(seat, 0.0) for seat in self.abouts}

    def now(self):
        return self.clock

    def poll(self, seconds):
        self.clock += 0.1
        happened = []
        for seat, when in list(self.coming.items()):
            if self.clock >= when:
                del self.coming[seat]
                happened.append(Opened(seat, self.abouts[seat]))
        for seat, (piece, when) in list(self.working.items()):
            if self.clock >= when:
                del self.working[seat]
                happened.append(self.outcome(seat, piece))
        return happened

    def outcome(self, seat, piece):
        fate = self.fates.pop((seat, piece.name), self.always.get(piece.name))
        if fate is None:
            return Finished(seat, Ended("ok", f"{piece.name}@{seat}", seconds=piece.seconds))
        if isinstance(fate, Ended):
            return Finished(seat, fate)
        if self.comes_back and "node" not in fate:
            self.coming[seat] = self.clock + 0.5
        return Lost(seat, fate, node_left="node" in fate)

    def begin(self, seat, piece):
        assert seat not in self.working, "one piece at a time"
        self.log.append((seat, piece.name))
        self.working[seat] = piece, self.clock + piece.seconds

    def retire(self, seat):
        self.retired.append(seat)
        self.coming.pop(seat, None)

    def release(self, seat):
        assert seat not in self.working, "only what is idle"
        self.released.append(seat)

    def recall(self):
        self.recalled += 1
        self.coming |= dict.fromkeys(self.released, self.clock + 0.5)
        self.released.clear()

    def looks(self):
        return {seat: Look(piece.name, "timing", 0.5) for seat, (piece, _) in self.working.items()}

    def waiting(self):
        return len(self.coming)

    def close(self):
        self.closed = True


@dataclass
class Work:
    """What is to be done, by machine, and what was kept."""

    seconds: dict
    kept: dict = field(default_factory=dict)  # (machine, operator) -> result
    done_elsewhere: set = field(default_factory=set)
    offered: list = field(default_factory=list)

    def pieces(self, about):
        self.offered.append(about.machine)
        return [Piece(name, about.machine, seconds, None) for name, seconds in self.seconds.items()]

    def is_done(self, piece):
        return piece.key in self.kept or piece.name in self.done_elsewhere

    def keep(self, piece, result):
        if piece.key in self.kept:
            return False
        self.kept[piece.key] = result
        return True


class Watching:
    def __init__(self):
        self.said = []

    def station(self, about, total):
        pass

    def begun(self, piece, about):
        pass

    def ended(self, piece, about, said):
        self.said.append(f"{piece.name} {said}")

    def say(self, line):
        self.said.append(line)

    def draw(self, dispatch, stations, looks):
        self.last = len(dispatch.done), len(dispatch.running), len(dispatch.waiting)


def drive(stations, work, folder, limits=LIMITS):
    """Run it to its end; returns the result, and the ledger's lines."""
    ledger = Ledger(folder, "run-1", "run", "c" * 40, "12")
    driver = Driver(stations, work, ledger, Watching(), limits, stations.now)
    try:
        return driver.run(), ledger.lines
    finally:
        stations.lines = ledger.lines
