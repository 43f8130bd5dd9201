"""Noise floors of series, from the A/A runs of this machine.

Each A/A run leaves one immutable file, ``results/<machine>/noise/<run id>.jsonl``, with one line a series: what its
processes' log-ratios were when both sides were the same code. All files of a machine together give the floor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import msgspec
import numpy as np

from groundspeed.analysis.rule import NOISE_PROCESSES, noise_floor
from groundspeed.errors import UserError

SeriesKey = tuple[str, str, str, str, str]  # operator, implementation, dtype, shape label, metric


class NoiseLine(msgspec.Struct, frozen=True):
    """A/A log-ratios, ln(second / first), one a process."""

    operator: str
    implementation: str
    dtype: str
    shape: str
    metric: str
    log_ratios: list[float]

    @property
    def key(self) -> SeriesKey:
        return self.operator, self.implementation, self.dtype, self.shape, self.metric


def noise_folder(results: Path, machine: str) -> Path:
    return results / machine / "noise"


def write_noise(folder: Path, run_id: str, lines: Iterable[NoiseLine]) -> Path:
    """Write one run's lines. Raises FileExistsError where the run already left some."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{run_id}.jsonl"
    with path.open("xb") as file:
        file.writelines(msgspec.json.encode(line) + b"\n" for line in lines)
    return path


def read_floors(folder: Path) -> dict[SeriesKey, float]:
    """The floor of every series with at least ten A/A processes; none where there is no folder.

    Raises UserError naming the file and line that cannot be read.
    """
    gathered: dict[SeriesKey, list[float]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for number, text in enumerate(path.read_bytes().splitlines(), 1):
            try:
                line = msgspec.json.decode(text, type=NoiseLine)
            except msgspec.DecodeError as error:
                raise UserError(f"{path}:{number}: {error}") from error
            gathered.setdefault(line.key, []).extend(value for value in line.log_ratios if math.isfinite(value))
    return {key: noise_floor(np.array(values)) for key, values in gathered.items() if len(values) >= NOISE_PROCESSES}
