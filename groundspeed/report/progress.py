"""How far a run is and how long it will take: a line that is redrawn on a terminal, plain lines in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import RLock
from typing import TextIO

from groundspeed.report.style import Style, clip, pad, width
from groundspeed.report.units import clock

_WORDS = {
    "start": "starting",
    "load": "building and loading",
    "ceilings": "measuring ceilings",
    "inputs": "making inputs",
    "prepare": "preparing",
    "first run": "running first",
    "first call, cold": "first call, empty caches,",
    "first call, warm": "first call, full caches,",
    "check": "checking",
    "calls": "timing calls",
    "time": "timing",
    "energy": "metering energy",
    "memory": "weighing memory",
}
_BAR = 20
_REDRAW = 0.1  # seconds between two drawings of the line
_EIGHTHS = " ▏▎▍▌▋▊▉"


@dataclass(frozen=True)
class Pace:
    """How long an operator has run, in seconds, and how much of its work, 0 to 1, is done."""

    elapsed: float
    share: float


@dataclass
class Estimate:
    """Seconds left, from what each operator is expected to take and how far off that was so far.

    expected
        operator → seconds
    lanes
        How many are measured at a time, while there are so many left.
    """

    expected: Mapping[str, float]
    spent: dict[str, float] = field(default_factory=dict)
    lanes: int = 1

    def left(self, running: Mapping[str, Pace]) -> float:
        """While these operators run, side by side."""
        planned = sum(self.expected[name] for name in self.spent) + self._done(running)
        actual = sum(self.spent.values()) + sum(pace.elapsed for pace in running.values())
        # Before a tenth of an operator is done, its start-up says nothing about its pace.
        told = self.spent or any(pace.share >= 0.1 for pace in running.values())
        pace = min(max(actual / planned if planned and told else 1.0, 0.2), 10.0)
        unfinished = sum(seconds for name, seconds in self.expected.items() if name not in self.spent)
        return pace * (unfinished - self._done(running)) / max(1, self.lanes)

    def share(self, running: Mapping[str, Pace]) -> float:
        """Of the whole run, weighed by expected seconds."""
        planned = sum(self.expected[name] for name in self.spent)
        return (planned + self._done(running)) / (sum(self.expected.values()) or 1.0)

    def _done(self, running: Mapping[str, Pace]) -> float:
        return sum(self.expected.get(name, 0.0) * pace.share for name, pace in running.items())


@dataclass
class _Running:
    """An operator that is being swept: since when, how far, and what was said last of it."""

    began: float
    share: float = 0.0
    said: str = ""


class Display:
    """What is shown while operators are swept, on one stream. Several may be swept at a time, each by its thread."""

    def __init__(
        self, stream: TextIO, style: Style, estimate: Estimate, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream, self._style, self._estimate, self._now = stream, style, estimate, now
        self._live = stream.isatty()
        self._running: dict[str, _Running] = {}
        self._drawn = -_REDRAW
        self._lock = RLock()

    def begin(self, operator: str, summary: str) -> None:
        """An operator's sweep begins."""
        with self._lock:
            self._running[operator] = _Running(self._now())
            if not self._live:
                self._write_line(f"{operator}: {summary}")

    def update(self, operator: str, phase: str, where: str, share: float) -> None:
        """Something of the sweep happened; about ``share`` of its work, 0 to 1, is done."""
        with self._lock:
            now = self._now()
            one = self._running.setdefault(operator, _Running(now))
            one.share = max(one.share, min(1.0, share))  # a bar that runs backwards helps nobody
            one.said = f"{_WORDS.get(phase, phase)} {where}".strip()
            if self._live and now - self._drawn >= _REDRAW:
                self._drawn = now
                self._draw()

    def end(self, operator: str, outcome: str) -> None:
        """An operator's sweep has ended."""
        with self._lock:
            spent = self._now() - self._running.pop(operator).began
            self._estimate.spent[operator] = spent
            left = self._estimate.left(self._paces())
            ahead = "" if self._live or not left else f"; about {clock(left)} left"
            self.say(f"{operator}: {outcome} in {clock(spent)}{ahead}")

    def say(self, line: str) -> None:
        """A line of its own."""
        with self._lock:
            self.clear()
            self._write_line(line)

    def note(self, line: str) -> None:
        """A line of its own in a log; on a terminal the bar tells as much."""
        with self._lock:
            if not self._live:
                self._write_line(line)

    def clear(self) -> None:
        """Take the line away, so that something else can be written."""
        if self._live:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _paces(self) -> dict[str, Pace]:
        now = self._now()
        return {name: Pace(now - one.began, one.share) for name, one in self._running.items()}

    def _draw(self) -> None:
        paces = self._paces()
        overall = self._estimate.share(paces)
        tail = f"{overall * 100:3.0f} %  about {clock(self._estimate.left(paces))} left"
        names = list(self._running)
        many = names[0] if len(names) == 1 else f"{len(names)} operators"
        head = f"{self._style.bold(many)} {bar(overall)} {tail}"
        room = self._style.width - width(head) - 3
        said = [one.said if len(names) == 1 else f"{name} {one.said}" for name, one in self._running.items()]
        each = max(8, (room - 3 * (len(said) - 1)) // len(said))
        text = " · ".join(clip(one, room if len(said) == 1 else each) for one in said)
        self._redraw(f"{head}  {self._style.dim(clip(text, room))}" if room > 8 else head)

    def _redraw(self, line: str) -> None:
        self._stream.write("\r" + pad(line, self._style.width - 1) + "\x1b[K")
        self._stream.flush()

    def _write_line(self, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()


def bar(share: float) -> str:
    """Twenty columns between two edges, filled from the left to a share, 0 to 1."""
    eighths = round(share * _BAR * 8)
    full = "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
    return f"▕{pad(full, _BAR)}▏"
