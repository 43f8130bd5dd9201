"""Colour on a terminal, and nothing but text anywhere else. Colour never carries meaning alone."""

from __future__ import annotations

import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

_RESET = "\x1b[0m"
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

# The colours of DESIGN.md §6, so that an implementation looks the same on a terminal and on the dashboard.
BACKEND_COLOURS = {
    "torch": (0x00, 0x72, 0xB2),
    "cuda": (0xD5, 0x5E, 0x00),
    "triton": (0x00, 0x9E, 0x73),
    "cupy": (0xCC, 0x79, 0xA7),
}
EAGER_COLOUR = (0x6B, 0x72, 0x80)


@dataclass(frozen=True)
class Style:
    """How to write on one stream: in colour or not, and how wide."""

    colour: bool = False
    width: int = 80

    @classmethod
    def of(cls, stream: TextIO | None = None, environment: Mapping[str, str] = os.environ) -> Style:
        """Colour on a terminal unless NO_COLOR is set or TERM is dumb; FORCE_COLOR wins over both."""
        stream = stream or sys.stdout
        terminal = stream.isatty()
        wanted = terminal and "NO_COLOR" not in environment and environment.get("TERM") != "dumb"
        columns = shutil.get_terminal_size((80, 24)).columns if terminal else 80
        return cls(colour=bool(environment.get("FORCE_COLOR")) or wanted, width=max(60, min(columns, 100)))

    def bold(self, text: str) -> str:
        return self._wrap(text, "1")

    def dim(self, text: str) -> str:
        return self._wrap(text, "2")

    def good(self, text: str) -> str:
        return self._wrap(text, "32")

    def bad(self, text: str) -> str:
        return self._wrap(text, "31")

    def backend(self, text: str, implementation: str) -> str:
        """In the colour of the implementation's back end."""
        colour = BACKEND_COLOURS.get(implementation.partition("_")[0])
        if implementation == "torch_eager":
            colour = EAGER_COLOUR
        return text if colour is None else self._wrap(text, "38;2;" + ";".join(map(str, colour)))

    def _wrap(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}{_RESET}" if self.colour and text else text


PLAIN = Style()


def width(text: str) -> int:
    """Columns a text takes on a terminal: escapes none, wide East Asian characters two, combining ones none."""
    bare = _ESCAPE.sub("", text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in bare)


def pad(text: str, columns: int, align: str = "<") -> str:
    """Fill with spaces to so many columns, counting no escapes."""
    gap = " " * max(0, columns - width(text))
    return gap + text if align == ">" else text + gap


def clip(text: str, columns: int) -> str:
    """Cut a plain text to so many columns, the last one an ellipsis."""
    if width(text) <= columns:
        return text
    kept = ""
    for character in text:
        if width(kept + character) > columns - 1:
            break
        kept += character
    return kept + "…"


def printable(text: str) -> str:
    """A text from a file or a message without control characters: it cannot move the cursor or forge a line."""
    return _CONTROL.sub("�", text)
