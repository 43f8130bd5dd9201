"""What the watched process is asked to run, and what it says of each case, one JSON object a line."""

from __future__ import annotations

from pathlib import Path

import msgspec

from groundspeed.operator import Case


class Request(msgspec.Struct, frozen=True):
    """One implementation and the check cases to run it on.

    ``tree`` is the folder of operators; ``variables`` are added to the process's environment: which GPU it sees.
    ``first_only`` ends it after the first case that the implementation takes.
    """

    tree: str
    operator: str
    implementation: str
    cases: tuple[tuple[str, tuple[tuple[str, int | str], ...]], ...]
    device: str = "cuda"
    seed: int = 0
    variables: dict[str, str] = {}
    first_only: bool = False

    def case_list(self) -> list[Case]:
        return [Case(dtype, shape) for dtype, shape in self.cases]


class Began(msgspec.Struct, frozen=True, tag=True):
    """A case is about to run: the last of these is where a process that died was."""

    case: str


class Ran(msgspec.Struct, frozen=True, tag=True):
    """A case ran to its end."""

    case: str


class Declined(msgspec.Struct, frozen=True, tag=True):
    """The implementation has no answer to a case, for a reason of its own."""

    case: str
    reason: str


class Raised(msgspec.Struct, frozen=True, tag=True):
    """A case, or loading before the first (an empty ``case``), raised."""

    case: str
    message: str


class Finished(msgspec.Struct, frozen=True, tag=True):
    """Nothing is left to run."""


Event = Began | Ran | Declined | Raised | Finished
_decoder = msgspec.json.Decoder(Event)


def read_events(path: Path) -> list[Event]:
    """Every whole line of an events file; none when the process never got as far as writing one."""
    if not path.exists():
        return []
    *lines, _ = path.read_bytes().split(b"\n")
    return [_decoder.decode(line) for line in lines]
