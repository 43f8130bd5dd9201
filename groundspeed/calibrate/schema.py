"""What one calibration found, and the file that keeps it.

It lies at ``results/<machine>/calibration/<run id>.json.gz`` (not ``.json``, which asv takes for its own), is written
once, whole, and never again: one JSON object, gzipped, of the fields of ``Calibration``. Times are nanoseconds unless
they are called seconds.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import msgspec

from groundspeed.errors import UserError
from groundspeed.records import Ceilings, Clocks, Environment, write_whole

SCHEMA = 1
FOLDER, SUFFIX = "calibration", ".json.gz"


class Probed(msgspec.Struct, frozen=True):
    """A probe as it was run."""

    name: str
    operation: str
    dtype: str
    shape: dict[str, int]


class Reading(msgspec.Struct, frozen=True):
    """What one method read of one probe in one process.

    value_ns
        The method's own answer: the median of its samples.
    spread
        Half the distance between the samples' 16th and 84th percentile over their median (one standard deviation, were
        they Gaussian); None where the method gives no samples.
    seconds
        Wall time that it took; 0 for what was read in another's pass.
    """

    method: str
    probe: str
    process: int
    value_ns: float
    count: int
    seconds: float
    spread: float | None = None


class Ratio(msgspec.Struct, frozen=True):
    """Two sides of the same code in one process, by our own timer: ln(second / first) of their medians."""

    metric: str  # a key of Measurement.samples
    probe: str
    process: int
    log_ratio: float


class Cost(msgspec.Struct, frozen=True):
    """What something of the machinery takes, in one process. ``name`` is a key of ``costs.COSTS``."""

    name: str
    process: int
    value_ns: float


class Clocked(msgspec.Struct, frozen=True):
    """The GPU right after our timer was done with a probe, in one process. MHz, watts."""

    probe: str
    process: int
    sm_mhz: int
    power_w: float
    throttle: tuple[str, ...] = ()


class Missing(msgspec.Struct, frozen=True):
    """What gave no figure, and why. ``probe`` is empty where all are meant, ``process`` -1 where every process is."""

    method: str
    reason: str
    probe: str = ""
    process: int = -1


class Calibration(msgspec.Struct, frozen=True, omit_defaults=True):
    """A calibration. ``beside`` is how many of the processes timed by other methods too, the first ones.

    timer
        Our timer in these processes: of ``Measurement.timer``.
    phases
        Wall time of all processes by what they did, in seconds.
    """

    run_id: str
    machine: str
    started: str
    environment: Environment
    processes: int
    beside: int
    rounds: int
    seconds: float
    timer: str
    probes: list[Probed]
    readings: list[Reading]
    ratios: list[Ratio]
    schema: int = SCHEMA
    commit: str = ""
    dirty: bool = False
    costs: list[Cost] = []
    ceilings: list[Ceilings] = []
    clocks: list[Clocks] = []
    clocked: list[Clocked] = []
    missing: list[Missing] = []
    phases: dict[str, float] = {}


def calibration_path(results: Path, machine: str, run_id: str) -> Path:
    return results / machine / FOLDER / f"{run_id}{SUFFIX}"


def write_calibration(path: Path, calibration: Calibration) -> None:
    """Write it atomically. Raises FileExistsError when the file is there, OSError when it cannot be written."""
    write_whole(path, gzip.compress(msgspec.json.encode(calibration) + b"\n", compresslevel=9, mtime=0))


def read_calibration(path: Path) -> Calibration:
    """Raises UserError naming a file that cannot be read, is no calibration, or is of a later schema."""
    try:
        text = gzip.decompress(path.read_bytes())
        schema = msgspec.json.decode(text).get("schema", SCHEMA)
        if schema != SCHEMA:
            raise UserError(f"{path}: schema {schema}, this groundspeed reads {SCHEMA}: upgrade groundspeed")
        return msgspec.json.decode(text, type=Calibration)
    except (OSError, EOFError, zlib.error, msgspec.DecodeError, AttributeError) as error:
        raise UserError(f"{path}: no calibration: {error}; restore it from git, or delete it") from error


def calibrated_machines(results: Path) -> tuple[str, ...]:
    """The machines that a calibration is kept of."""
    return tuple(sorted({path.parent.parent.name for path in results.glob(f"*/{FOLDER}/*{SUFFIX}")}))


def newest(results: Path, machine: str) -> Path | None:
    """The file of the last calibration of a machine: run ids sort by time."""
    return max((results / machine / FOLDER).glob(f"*{SUFFIX}"), key=lambda path: path.name, default=None)
