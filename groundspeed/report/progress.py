"""How far a run is and how long it will take: a line that is redrawn on a terminal, plain lines in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
    "check": "checking",
    "calls": "timing calls",
    "time": "timing",
    "energy": "metering energy",
    "memory": "weighing memory",
}
_BAR = 20
_REDRAW = 0.1  # seconds between two drawings of the line
_EIGHTHS = " ▏▎▍▌▋▊▉"


@dataclass
class Estimate:
    """Seconds left, from what each operator is expected to take and how far off that was so far.

    expected
        operator → seconds, in the order in which they are measured
    """

    expected: Mapping[str, float]
    spent: dict[str, float] = field(default_factory=dict)

    def left(self, operator: str, share: float, elapsed: float) -> float:
        """While ``operator`` has run for ``elapsed`` seconds and done ``share`` of its work."""
        planned = sum(self.expected[name] for name in self.spent) + self.expected.get(operator, 0.0) * share
        actual = sum(self.spent.values()) + elapsed
        # Before a tenth of an operator is done, its start-up says nothing about its pace.
        pace = actual / planned if planned and (self.spent or share >= 0.1) else 1.0
        pace = min(max(pace, 0.2), 10.0)
        later = sum(seconds for name, seconds in self.expected.items() if name not in self.spent and name != operator)
        return pace * (self.expected.get(operator, 0.0) * (1 - share) + later)

    def total(self) -> float:
        return sum(self.expected.values())


class Display:
    """What is shown while operators are swept, on one stream."""

    def __init__(
        self, stream: TextIO, style: Style, estimate: Estimate, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream, self._style, self._estimate, self._now = stream, style, estimate, now
        self._live = stream.isatty()
        self._began = now()
        self._share = 0.0
        self._drawn = -_REDRAW

    def begin(self, operator: str, summary: str) -> None:
        """An operator's sweep begins."""
        self._began = self._now()
        self._share = 0.0
        if not self._live:
            self._write_line(f"{operator}: {summary}")

    def update(self, operator: str, phase: str, where: str, share: float) -> None:
        """Something of the sweep happened; about ``share`` of its work, 0 to 1, is done."""
        now = self._now()
        if not self._live or now - self._drawn < _REDRAW:
            return
        self._drawn = now
        self._share = share = max(self._share, min(1.0, share))  # a bar that runs backwards helps nobody
        left = self._estimate.left(operator, share, now - self._began)
        overall = self._overall(operator, share)
        tail = f"{overall * 100:3.0f} %  about {clock(left)} left"
        head = f"{self._style.bold(operator)} {_bar(overall)} {tail}"
        text = f"{_WORDS.get(phase, phase)} {where}".strip()
        room = self._style.width - width(head) - 3
        self._redraw(f"{head}  {self._style.dim(clip(text, room))}" if room > 8 else head)

    def end(self, operator: str, outcome: str) -> None:
        """An operator's sweep has ended."""
        spent = self._now() - self._began
        self._estimate.spent[operator] = spent
        left = self._estimate.left("", 0.0, 0.0)
        ahead = "" if self._live or not left else f"; about {clock(left)} left"
        self.say(f"{operator}: {outcome} in {clock(spent)}{ahead}")

    def say(self, line: str) -> None:
        """A line of its own."""
        self.clear()
        self._write_line(line)

    def clear(self) -> None:
        """Take the line away, so that something else can be written."""
        if self._live:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _overall(self, operator: str, share: float) -> float:
        """Of the whole run, weighed by expected seconds."""
        planned = sum(self._estimate.expected[name] for name in self._estimate.spent)
        return (planned + self._estimate.expected.get(operator, 0.0) * share) / (self._estimate.total() or 1.0)

    def _redraw(self, line: str) -> None:
        self._stream.write("\r" + pad(line, self._style.width - 1) + "\x1b[K")
        self._stream.flush()

    def _write_line(self, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()


def _bar(share: float) -> str:
    eighths = round(share * _BAR * 8)
    full = "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
    return f"▕{pad(full, _BAR)}▏"
