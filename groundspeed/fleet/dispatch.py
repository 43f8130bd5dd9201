"""Which piece goes where: the longest first, each once, again elsewhere when its station is lost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from groundspeed.fleet.work import Piece

MOST_ATTEMPTS = 3  # that may end with the piece's own fault: a dead process, an error; nodes that leave do not count


@dataclass(frozen=True)
class Move:
    """A piece that had to be begun again. ``to`` is empty while it waits, and when it was given up."""

    name: str
    machine: str
    source: str
    why: str
    to: str = ""


@dataclass
class _Held:
    """A piece and its history."""

    piece: Piece
    failures: int = 0
    failed_at: frozenset[str] = frozenset()  # labels of stations: a new one on the same GPU has the same


class Dispatch:
    """The pieces of all groups that are not done. Knows nothing of Ray or of clocks."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], _Held] = {}
        self._running: dict[str, _Held] = {}  # by seat
        self.done: list[Piece] = []
        self.moves: list[Move] = []
        self.problems: dict[tuple[str, str], str] = {}

    def add(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            self._waiting[piece.key] = _Held(piece)

    @property
    def finished(self) -> bool:
        return not self._waiting and not self._running

    @property
    def waiting(self) -> list[Piece]:
        """Longest first."""
        return [held.piece for held in sorted(self._waiting.values(), key=_order)]

    @property
    def running(self) -> dict[str, Piece]:
        """By seat."""
        return {seat: held.piece for seat, held in self._running.items()}

    def take(self, seat: str, machine: str, label: str, others: Iterable[str]) -> Piece | None:
        """The longest piece for an idle seat of a machine, or None.

        One that failed at this station's label is left for ``others``, the labels of the machine's stations that still
        live, unless it has failed at every one of them.
        """
        everywhere = frozenset((*others, label))
        for held in sorted(self._waiting.values(), key=_order):
            mine = held.piece.machine == machine
            if mine and (label not in held.failed_at or everywhere <= held.failed_at):
                del self._waiting[held.piece.key]
                self._running[seat] = held
                self._note_arrival(held.piece, label)
                return held.piece
        return None

    def end(self, seat: str) -> Piece:
        """The piece of a seat is done."""
        held = self._running.pop(seat)
        self.done.append(held.piece)
        return held.piece

    def give_up(self, seat: str, reason: str) -> Piece:
        """The piece of a seat cannot be done anywhere."""
        held = self._running.pop(seat)
        self.problems[held.piece.key] = reason
        return held.piece

    def again(self, seat: str, label: str, why: str, its_fault: bool) -> Piece:
        """The piece of a seat must be begun again elsewhere, or is given up after as many failures of its own."""
        held = self._running.pop(seat)
        held.failures += its_fault
        held.failed_at |= {label}
        self.moves.append(Move(held.piece.name, held.piece.machine, label, why))
        if held.failures >= MOST_ATTEMPTS:
            self.problems[held.piece.key] = f"given up after {held.failures} tries: {why}"
        else:
            self._waiting[held.piece.key] = held
        return held.piece

    def skip(self, piece: Piece) -> None:
        """A piece that waits, or that was just taken, is done by somebody else."""
        self._waiting.pop(piece.key, None)
        for seat, held in list(self._running.items()):
            if held.piece.key == piece.key:
                del self._running[seat]
        self.done.append(piece)

    def abandon(self, machine: str, reason: str) -> None:
        """No station of a machine is left, and none will come."""
        for key, held in list(self._waiting.items()):
            if held.piece.machine == machine:
                del self._waiting[key]
                self.problems[key] = reason

    def _note_arrival(self, piece: Piece, label: str) -> None:
        for index in range(len(self.moves) - 1, -1, -1):
            move = self.moves[index]
            if (move.machine, move.name) == piece.key:
                if not move.to:
                    self.moves[index] = Move(move.name, move.machine, move.source, move.why, label)
                return


def _order(held: _Held) -> tuple[float, str, str]:
    return -held.piece.seconds, held.piece.name, held.piece.machine
