"""What passes between the driver of a fleet and its stations: one station an actor, with one GPU to itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

Ending = Literal["ok", "problem", "unfit", "raised"]
Tell = Callable[[str, float], None]
"""What is being done, and which share of the piece, 0 to 1, is behind it."""


@dataclass(frozen=True)
class About:
    """Where a station is and what it has.

    machine
        The kind of GPU that its results are filed under; stations of one machine are a group.
    place
        A name of this one GPU that tells nothing of its host: what ledgers keep.
    label
        The same for people: host and GPU.
    problem
        Why nothing can be measured there, or empty.
    """

    host: str
    machine: str
    place: str
    label: str
    device_name: str = ""
    driver: str = ""
    torch: str = ""
    python: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Piece:
    """Work for one station: an operator, for one kind of machine. ``seconds`` is what it is expected to take."""

    name: str
    machine: str
    seconds: float
    order: object

    @property
    def key(self) -> tuple[str, str]:
        return self.machine, self.name


@dataclass(frozen=True)
class Ended:
    """How a piece ended.

    ending
        "ok" with what came of it as ``result``; "problem", the user's to mend and the same everywhere; "unfit", the
        place cannot measure any more; "raised", an error that nobody expected.
    seconds
        That the station spent on it.
    """

    ending: Ending
    result: object = None
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Look:
    """How far a station is: the name of its piece, what is being done, and which share of it is done."""

    name: str = ""
    said: str = ""
    share: float = 0.0


class Unfit(Exception):
    """This place cannot measure any more: its GPU is gone, or somebody else's. The message says why."""


class Bench(Protocol):
    """What a station works with. Made in the station's own process."""

    def about(self) -> About: ...

    def work(self, order: object, tell: Tell) -> object:
        """Raises UserError for what is the user's to mend, Unfit when the place is lost."""


# happenings that a driver is told of: one of a station


@dataclass(frozen=True)
class Opened:
    """A station is there and has looked about itself."""

    seat: str
    about: About


@dataclass(frozen=True)
class Finished:
    """A station has ended its piece."""

    seat: str
    ended: Ended


@dataclass(frozen=True)
class Lost:
    """A station is gone: its process died, or its node left the fleet."""

    seat: str
    why: str
    node_left: bool = False


Happening = Opened | Finished | Lost


class Stations(Protocol):
    """A fleet's stations. A seat is a place for one: it may be taken by somebody else, and become free."""

    def poll(self, seconds: float) -> list[Happening]:
        """What has happened, waiting so long for something at most. Opens stations on new and on freed seats."""

    def begin(self, seat: str, piece: Piece) -> None:
        """Hand an idle station its piece."""

    def retire(self, seat: str) -> None:
        """Use a seat no more. Its GPU stays held, so that nobody is given it while this driver lives."""

    def release(self, seat: str) -> None:
        """Give back the GPU of an idle station, and ask for no more of them."""

    def recall(self) -> None:
        """Ask for stations again."""

    def looks(self) -> dict[str, Look]:
        """How far each busy station is, as far as it is known."""

    def waiting(self) -> int:
        """How many seats have no station yet that might still get one."""

    def close(self) -> None:
        """End all stations, and what they do."""
