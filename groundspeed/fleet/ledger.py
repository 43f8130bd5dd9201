"""What a fleet's time went to: a line for every piece that ended, however it did; lines are only ever added.

It lies at results/<machine>/fleet/<run id>.jsonl, for a run and for a gate alike. Nothing in it names a host.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from groundspeed.errors import UserError

Outcome = Literal["kept", "duplicate", "problem", "died", "left", "unfit", "raised", "stopped", "idle"]
REPEATED: tuple[Outcome, ...] = ("died", "left", "unfit", "raised")


class Spent(msgspec.Struct, frozen=True, omit_defaults=True):
    """Seconds for which one GPU was held.

    outcome
        "kept": a result came of it; "duplicate": one was there already; "problem": there can be none; "died", "left",
        "unfit", "raised": it was begun again, because a process died, a node left, a GPU was lost, or of an error;
        "stopped": the driver was ended; "idle": the GPU was held and did nothing.
    place
        A digest that names the GPU, or without one the host.
    """

    at: str
    run: str
    kind: Literal["run", "gate"]
    machine: str
    operator: str
    place: str
    seconds: float
    outcome: Outcome
    why: str = ""
    commit: str = ""
    pull_request: str = ""


class Ledger:
    """Adds lines to the ledgers of one run, one file a machine."""

    def __init__(self, results: Path, run: str, kind: Literal["run", "gate"], commit: str, pull_request: str) -> None:
        self._results, self._run, self._kind = results, run, kind
        self._commit, self._pull_request = commit, pull_request
        self.lines: list[Spent] = []

    def add(self, machine: str, operator: str, place: str, seconds: float, outcome: Outcome, why: str = "") -> None:
        """Raises OSError when it cannot be written."""
        line = Spent(
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            run=self._run,
            kind=self._kind,
            machine=machine,
            operator=operator,
            place=place,
            seconds=round(seconds, 3),
            outcome=outcome,
            why=why,
            commit=self._commit,
            pull_request=self._pull_request,
        )
        self.lines.append(line)
        path = ledger_path(self._results, machine, self._run)
        path.parent.mkdir(parents=True, exist_ok=True)
        # One write to a file opened for appending: two drivers' lines cannot mix, and a kill leaves at most a torn one.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.write(descriptor, msgspec.json.encode(line) + b"\n")
        finally:
            os.close(descriptor)


def ledger_path(results: Path, machine: str, run: str) -> Path:
    return results / machine / "fleet" / f"{run}.jsonl"


def read_ledgers(results: Path) -> list[Spent]:
    """All lines of all ledgers, by time. A torn last line, which a kill can leave, is passed over.

    Raises UserError, naming the file, for any other line that cannot be read.
    """
    found = []
    for path in sorted(results.glob("*/fleet/*.jsonl")):
        lines = path.read_bytes().split(b"\n")
        for number, line in enumerate(lines, 1):
            try:
                if line:
                    found.append(msgspec.json.decode(line, type=Spent))
            except msgspec.DecodeError as error:
                if number < len(lines):
                    raise UserError(f"{path}: line {number} cannot be read: {error}; delete the line") from error
    return sorted(found, key=lambda line: line.at)


def totals(lines: Iterable[Spent]) -> dict[Outcome, float]:
    """Seconds by outcome."""
    found: dict[Outcome, float] = {}
    for line in lines:
        found[line.outcome] = found.get(line.outcome, 0.0) + line.seconds
    return found
