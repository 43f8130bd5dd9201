"""What is kept of planted slowdowns: JSON lines in ``results/<machine>/gate-trials/<run id>.jsonl.gz``.

A run appends to its own file, one gzip member for each operator that it finished, so that what was finished stays
readable whatever happens next. No other run writes to the file.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from groundspeed.errors import UserError
from groundspeed.gate.trials.plant import Kind

FOLDER = "gate-trials"


class Point(msgspec.Struct, frozen=True, tag="point"):
    """What an amount was seen to add, in a process of its own: medians of both sides, ns."""

    operator: str
    implementation: str
    dtype: str
    shape: str
    amount: int
    base_ns: float
    head_ns: float

    @property
    def series(self) -> tuple[str, str, str, str]:
        return self.operator, self.implementation, self.dtype, self.shape

    @property
    def effect_ns(self) -> float:
        return self.head_ns - self.base_ns


class Trial(msgspec.Struct, frozen=True, tag="trial"):
    """One comparison of one planted commit.

    size
        What was aimed at: 0.03 is 3 %; 0 for a control, in whose case nothing was planted.
    true_ratio, true_low, true_high
        Head over base, measured apart from the gate: the Hodges–Lehmann estimate over ``true_processes`` processes,
        the smallest and the largest of them.
    verdict, ratio, low, high, processes, reason
        The gate's; "could not measure" where it has none.
    """

    round: int
    commit: str
    device: str
    operator: str
    implementation: str
    dtype: str
    shape: str
    kind: Kind
    amount: int
    size: float
    threshold: float
    base_ns: float
    true_ratio: float
    true_low: float
    true_high: float
    true_processes: int
    verdict: str
    ratio: float | None
    low: float | None
    high: float | None
    processes: int
    reason: str


class Done(msgspec.Struct, frozen=True, tag="done"):
    """An operator of a round is finished. Seconds of wall time: of the gate alone, and of everything."""

    round: int
    operator: str
    gate_seconds: float
    seconds: float


Line = Point | Trial | Done
_decoder = msgspec.json.Decoder(Line)


def trials_folder(results: Path, machine: str) -> Path:
    return results / machine / FOLDER


def append(path: Path, lines: Iterable[Line]) -> None:
    """Add lines to a run's file as a gzip member of their own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    with path.open("ab") as file:
        file.write(gzip.compress(text, mtime=0))


def read(results: Path, machine: str = "*") -> dict[str, list[Line]]:
    """All lines by machine, oldest file first. Raises UserError naming a file that cannot be read."""
    found: dict[str, list[Line]] = {}
    for path in sorted(results.glob(f"{machine}/{FOLDER}/*.jsonl.gz"), key=lambda path: path.name):
        try:
            text = gzip.decompress(path.read_bytes())
            lines = [_decoder.decode(line) for line in text.splitlines()]
        except (OSError, EOFError, zlib.error, msgspec.DecodeError) as error:
            raise UserError(f"{path}: {error}") from error
        found.setdefault(path.parents[1].name, []).extend(lines)
    return found
