"""The mark of a line that a skeleton leaves to be written, and where it still stands."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

MARK = "groundspeed new:"
_MARKED = re.compile(rf"^\s*(?:#|//)\s*{re.escape(MARK)}\s*(.+?)\s*$")


@dataclass(frozen=True)
class Unfinished:
    """A marked line: its file, its number from 1 on, and what it asks for."""

    file: Path
    line: int
    wanted: str


def unfinished(files: Iterable[Path]) -> list[Unfinished]:
    """The marked lines of files, in order."""
    found = []
    for file in files:
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
            marked = _MARKED.match(line)
            if marked:
                found.append(Unfinished(file, number, marked.group(1)))
    return found
