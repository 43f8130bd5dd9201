"""The whole fleet in one view: a line a kind of machine that is redrawn on a terminal, plain lines in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from groundspeed.fleet.dispatch import Dispatch
from groundspeed.fleet.work import About, Look, Piece
from groundspeed.report.progress import bar
from groundspeed.report.style import Style, clip, pad, width
from groundspeed.report.units import clock

_REDRAW = 0.2  # seconds between two drawings
_IN_A_LOG = 60.0


@dataclass
class _Group:
    """One kind of machine: expected seconds of what is done, in work, waiting."""

    done: float = 0.0
    running: float = 0.0
    left: float = 0.0
    counts: list[int] = field(default_factory=lambda: [0, 0, 0])  # done, running, waiting
    said: list[tuple[float, str]] = field(default_factory=list)  # seconds left, what is said


class FleetView:
    """Shows a fleet's progress on one stream."""

    def __init__(self, stream: TextIO, style: Style, now: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._style, self._now = stream, style, now
        self._live = stream.isatty()
        self._height = 0
        self._drawn = now()
        self._began: dict[tuple[str, str], float] = {}
        self._spent: dict[tuple[str, str], float] = {}

    def station(self, about: About, total: int) -> None:
        device = f" ({about.device_name})" if about.device_name else ""
        self.say(f"{about.label}{device} joins as {about.machine}; {total} in all")

    def begun(self, piece: Piece, about: About) -> None:
        self._began[piece.key] = self._now()
        if not self._live:
            self.say(f"{piece.name}: begun on {about.label} ({piece.machine})")

    def ended(self, piece: Piece, about: About, said: str) -> None:
        spent = self._now() - self._began.pop(piece.key, self._now())
        self._spent[piece.key] = spent
        self.say(f"{piece.name}: {said} in {clock(spent)} on {about.label} ({piece.machine})")

    def say(self, line: str) -> None:
        """A line of its own, above the view."""
        self.clear()
        self._stream.write(line + "\n")
        self._stream.flush()

    def draw(self, dispatch: Dispatch, stations: Sequence[About], looks: dict[str, Look]) -> None:
        """The view anew, unless that was done a moment ago."""
        if self._now() - self._drawn < (_REDRAW if self._live else _IN_A_LOG):
            return
        self._drawn = self._now()
        lines = self.lines(dispatch, stations, looks)
        if not self._live:
            self.say("\n".join(lines))
            return
        self.clear()
        self._stream.write("\n".join(lines))
        self._stream.flush()
        self._height = len(lines)

    def clear(self) -> None:
        """Take the view away, so that something else can be written."""
        if self._height:
            up = f"\x1b[{self._height - 1}A" if self._height > 1 else ""
            self._stream.write(f"\r{up}\x1b[J")
            self._stream.flush()
            self._height = 0

    def lines(self, dispatch: Dispatch, stations: Sequence[About], looks: dict[str, Look]) -> list[str]:
        """One line a machine: share done, operators done of all, GPUs busy, time left, and what takes longest."""
        groups = self._groups(dispatch, looks)
        seats: dict[str, int] = {}
        for station in stations:
            seats[station.machine] = seats.get(station.machine, 0) + 1
        wide = max((width(machine) for machine in groups), default=0)
        return [
            self._line(pad(machine, wide), group, seats.get(machine, 0)) for machine, group in sorted(groups.items())
        ]

    def _groups(self, dispatch: Dispatch, looks: dict[str, Look]) -> dict[str, _Group]:
        groups: dict[str, _Group] = {}
        for piece in dispatch.done:
            group = groups.setdefault(piece.machine, _Group())
            group.counts[0] += 1
            group.done += piece.seconds
        for seat, piece in dispatch.running.items():
            group = groups.setdefault(piece.machine, _Group())
            look = looks.get(seat, Look())
            share = look.share if look.name == piece.name else 0.0
            group.counts[1] += 1
            group.running += piece.seconds * share
            group.left += piece.seconds * (1 - share)
            group.said.append((piece.seconds * (1 - share), f"{piece.name} {look.said}".strip()))
        for piece in dispatch.waiting:
            group = groups.setdefault(piece.machine, _Group())
            group.counts[2] += 1
            group.left += piece.seconds
        return groups

    def _line(self, machine: str, group: _Group, seats: int) -> str:
        whole = group.done + group.running + group.left
        share = (group.done + group.running) / whole if whole else 1.0
        longest = max(group.said, default=(0.0, ""))
        left = max(group.left / max(seats, 1), longest[0])
        done, running, waiting = group.counts
        head = f"{self._style.bold(machine)} {bar(share)} {done} of {done + running + waiting}"
        head += f"  {running} of {seats} GPUs busy  about {clock(left)} left"
        room = self._style.width - width(head) - 3
        return f"{head}  {self._style.dim(clip(longest[1], room))}" if room > 8 and longest[1] else head


def view(stream: TextIO) -> FleetView:
    """On a stream, as it is."""
    return FleetView(stream, Style.of(stream))
