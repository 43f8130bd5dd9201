"""What one run learnt of one operator, and the file that keeps it.

A record file is written once, whole, when the sweep of an operator ends, and never rewritten: two runners cannot
conflict and a kill loses at most the operator being measured. It lies at

    results/<machine>/records/<run id>/<operator>.jsonl.gz

and holds one JSON object a line: a ``Header``, then one ``Measurement`` for every implementation and case of the
inventory (skipped and failed ones with their reason), then a ``Footer`` whose count proves the file is whole.
Whoever lists a run's folder passes over ``SELECTION_FILE``, which holds no results.
This module knows nothing of torch, so that whatever reads records starts in milliseconds.
"""

from __future__ import annotations

import errno
import gzip
import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

from groundspeed.whole_files import replace_whole

SCHEMA = 1
SUFFIX = ".jsonl.gz"
SELECTION_FILE = "selection"  # beside the records of a `groundspeed run`: what it is narrowed to, for --resume
QUANTITIES = ("device_cold", "device_hot", "call", "host")
CHOICES_BY = "; "  # what stands between two autotuners' choices

Status = Literal["ok", "skipped", "failed"]
Failure = Literal["build", "incorrect", "impossible", "crash", "oom", "timeout", "error"]


class RecordError(Exception):
    """A record file that cannot be read: names the file and what is wrong with it."""


class Environment(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a run happened. Absent parts are empty; sizes in bytes, power in watts, clocks in MHz."""

    device: str  # "cuda" or "cpu"
    device_name: str
    python: str
    os: str
    cpu: str = ""
    threads: int = 0
    device_count: int = 0
    uuid_hash: str = ""
    driver: str = ""
    cuda: str = ""
    capability: str = ""
    multiprocessors: int = 0
    l2_bytes: int = 0
    memory_bytes: int = 0
    power_cap_w: float = 0.0
    torch: str = ""
    triton: str = ""
    cupy: str = ""
    nvcc: str = ""
    libraries: dict[str, str] = {}  # version by distribution, of those that the implementations are written with
    groundspeed: str = ""
    other_processes: int = 0  # processes of others seen on the GPU when the run began


class Ceilings(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the device reached in this session: bytes/s by kind of traffic, FLOP/s of a matmul by dtype.

    ``mixes`` are the rates of kernels that read and write several arrays, as ``2:1``; calibrations alone measure them.
    ``link`` is the rate of a copy from page-locked host memory; 0 where it was not measured. ``peer`` is the rate at
    which a GPU sends to another while it receives as much, ``peer_one_way`` while it receives nothing; 0 on one GPU.
    """

    copy: float = 0.0
    read: float = 0.0
    write: float = 0.0
    link: float = 0.0
    matmul: dict[str, float] = {}
    peer: float = 0.0
    peer_one_way: float = 0.0
    mixes: dict[str, float] = {}


class Accuracy(msgspec.Struct, frozen=True, omit_defaults=True):
    """Distance from the float64 reference on the measured case's own inputs.

    max_abs
        max |out - ref|
    max_rel
        max |out - ref| / |ref| over elements with |ref| above the dtype's smallest normal number
    norm
        ||out - ref|| / ||ref||, Euclidean
    tolerance_used
        max |out - ref| / (atol + rtol |ref|): above 1 is a failure
    """

    max_abs: float
    max_rel: float
    norm: float
    tolerance_used: float


class KernelResources(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the compiler gave one kernel."""

    name: str
    registers: int = 0
    shared_bytes: int = 0
    spill_bytes: int = 0


class FirstCall(msgspec.Struct, frozen=True):
    """From inputs on the device to the first output, in a process that had done nothing but import torch. Nanoseconds.

    load_ns
        importing the implementation's file, building what is built
    prepare_ns, run_ns
        ``prepare`` and the first ``run``
    """

    load_ns: float
    prepare_ns: float
    run_ns: float

    @property
    def total_ns(self) -> float:
        return self.load_ns + self.prepare_ns + self.run_ns


class Clocks(msgspec.Struct, frozen=True, omit_defaults=True):
    """Read through NVML around the timed rounds of a case."""

    sm_mhz: tuple[int, int] = (0, 0)  # lowest and highest seen
    memory_mhz: int = 0
    power_w: float = 0.0
    temperature_c: int = 0
    throttle: tuple[str, ...] = ()


class Measurement(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything learnt of one implementation on one case in one run.

    ``samples`` maps a quantity to nanoseconds, one value a round; value i of every implementation of a case comes
    from the same round i, so ratios can be paired:

    device_cold, device_hot
        span of the work on the device (on a CPU: of the call), with the L2 cache emptied by a read, and without
    call
        host wall time of one synchronised call
    host
        host time to issue the work, not waiting for it
    """

    implementation: str
    dtype: str
    shape: dict[str, int | str]
    status: Status
    case_digest: str = ""
    implementation_digest: str = ""
    failure: Failure | None = None
    reason: str = ""
    unstable: str = ""  # why it is doubtful, although it is kept: a wide interval, others on the GPU
    apart: bool = False  # measured in a worker of its own: its rounds are no other implementation's
    timer: str = ""  # "cupti", "events", "graph" or "clock"
    samples: dict[str, list[float]] = {}
    kernels: list[str] = []  # device kernels of one call, in order
    kernel_ns: list[float] = []  # median span of each of them, caches cold; gaps between them are in no span
    prepare_ns: float | None = None
    first_run_ns: float | None = None
    first_call_cold: FirstCall | None = None  # with empty caches, and then with what that left in them
    first_call_warm: FirstCall | None = None
    peak_memory_bytes: int | None = None  # most that one call holds at once, above what was there before it
    prepared_memory_bytes: int = 0  # held between calls, from the import of the file on; older records do not have it
    energy_nj: float | None = None
    accuracy: Accuracy | None = None
    flops: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    bus_bytes: int = 0  # between GPUs: what the busiest rank must send, for bus bandwidth; the slowest rank is timed
    items: int = 0  # samples (images, rows) in one call, for samples/s
    resources: list[KernelResources] = []
    tuned: str = ""  # the configuration that an autotuner chose; several in the order of their launches, by CHOICES_BY
    clocks: Clocks | None = None
    notes: list[str] = []  # why another timer than usual, what its readings hold besides, how energy was had

    @property
    def backend(self) -> str:
        return self.implementation.partition("_")[0]

    @property
    def shape_label(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.shape.items())

    @property
    def case_label(self) -> str:
        return f"{self.dtype} {self.shape_label}"

    @property
    def memory_bytes(self) -> int | None:
        """Most that an implementation holds above its inputs: what it is judged by, wherever it allocates."""
        return None if self.peak_memory_bytes is None else self.peak_memory_bytes + self.prepared_memory_bytes

    @property
    def first_call_ns(self) -> float | None:
        """Prepare and first run in the sweep's own warm process: load, and what no cache has of compile and tune."""
        if self.prepare_ns is None or self.first_run_ns is None:
            return None
        return self.prepare_ns + self.first_run_ns


class Header(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which run this is. Times are ISO 8601 in UTC."""

    run_id: str
    operator: str
    machine: str
    started: str
    environment: Environment
    schema: int = SCHEMA
    commit: str = ""  # full hash of the implementation files' commit; empty outside git
    commit_time: str = ""
    dirty: bool = False  # the working tree differed from the commit
    tier: str = "full"
    seed: int = 0
    bound: str = "memory"
    ladders: dict[str, list[str]] = {}
    ideas: dict[str, str] = {}  # implementation -> its idea, one sentence
    missing: dict[str, str] = {}  # back end -> why it has no implementation
    ceilings: Ceilings | None = None
    command: str = ""  # reproduces this sweep
    matrix: str = ""  # what asv's matrix asked for, such as torch2.11.0: runs with different ones are different series
    rehearsal_s: float = 0.0  # seconds of compiling and tuning before the sweeps, of all that were begun with this one


class Footer(msgspec.Struct, frozen=True, omit_defaults=True):
    """Ends a whole file. ``seconds`` splits the sweep's wall time by phase."""

    end: int
    seconds: dict[str, float] = {}


class Record(msgspec.Struct, frozen=True):
    """One operator's sweep, in memory."""

    header: Header
    measurements: tuple[Measurement, ...]
    footer: Footer


def record_path(results: Path, machine: str, run_id: str, operator: str) -> Path:
    """Where the record of one operator in one run is kept."""
    return results / machine / "records" / run_id / f"{operator}{SUFFIX}"


def check_path(results: Path, machine: str, run_id: str, operator: str) -> Path:
    """Where what ``groundspeed check --keep`` found of one operator is kept, in the form of a record."""
    return results / machine / "checks" / run_id / f"{operator}{SUFFIX}"


def find_records(results: Path) -> list[Path]:
    """Every record file under a results folder, oldest run first."""
    return sorted(results.glob(f"*/records/*/*{SUFFIX}"), key=lambda path: (path.parent.name, path.name))


def write_record(path: Path, record: Record) -> None:
    """Write a record atomically: a reader sees the whole file or none, and a full disk leaves nothing behind.

    Raises FileExistsError when the record is already there (records are immutable), OSError when it cannot be
    written, and ValueError for one that could not be read back, such as one with a NaN.
    """
    write_whole(path, gzip.compress(b"\n".join(map(_line, _parts(record))) + b"\n", compresslevel=9, mtime=0))


def write_whole(path: Path, payload: bytes) -> None:
    """Write a file that is never rewritten: a reader sees all of it or none, and a full disk leaves nothing behind.

    Raises FileExistsError when it is already there, OSError when it cannot be written.
    """
    if path.exists():
        raise FileExistsError(errno.EEXIST, "is there already, and records are never rewritten", str(path))
    replace_whole(path, payload)


def _parts(record: Record) -> list[msgspec.Struct]:
    return [record.header, *record.measurements, record.footer]


def _line(part: msgspec.Struct) -> bytes:
    """JSON has no NaN and no infinity: encoded as null, they would make a file that nobody can read."""
    line = msgspec.json.encode(part)
    try:
        msgspec.json.decode(line, type=type(part))
    except msgspec.DecodeError as error:
        name = getattr(part, "implementation", type(part).__name__)
        raise ValueError(f"{name} {getattr(part, 'case_label', '')}: not a finite number: {error}") from error
    return line


def read_record(path: Path) -> Record:
    """Read one record file. Raises RecordError with the file and the reason when it is damaged or from the future."""
    try:
        return parse_record(path, path.read_bytes())
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error}") from error


def read_header(path: Path) -> Header:
    """A record's header alone, without its measurements. Raises RecordError."""
    try:
        with gzip.open(path, "rb") as file:
            return msgspec.json.decode(file.readline(), type=Header)
    except (OSError, EOFError, zlib.error, msgspec.DecodeError) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from error


def age(header: Header) -> tuple[float, str]:
    """What records are put in order by: the moment of the commit that was measured, then of the run.

    Past commits are measured after newer ones (asv run A..B). A record without a commit counts from when it was begun;
    what is no time at all comes before every time, as in the dashboard.
    """
    try:
        return datetime.fromisoformat(header.commit_time or header.started).timestamp(), header.run_id
    except (ValueError, OverflowError):
        return 0.0, header.run_id


def parse_record(path: Path, payload: bytes) -> Record:
    """A record from the bytes of its file; ``path`` is for errors. Raises RecordError."""
    try:
        lines = gzip.decompress(payload).split(b"\n")[:-1]
    except (OSError, EOFError, zlib.error) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from error
    if len(lines) < 2:
        raise RecordError(f"{path}: has {len(lines)} lines, expected a header, measurements and a footer")
    try:
        schema = msgspec.json.decode(lines[0]).get("schema", SCHEMA)
        if schema != SCHEMA:
            raise RecordError(f"{path}: schema {schema}, this groundspeed reads {SCHEMA}: upgrade groundspeed")
        header = msgspec.json.decode(lines[0], type=Header)
        footer = msgspec.json.decode(lines[-1], type=Footer)
        measurements = tuple(msgspec.json.decode(line, type=Measurement) for line in lines[1:-1])
    except (msgspec.DecodeError, AttributeError, RecursionError) as error:
        raise RecordError(f"{path}: not a record: {error}") from error
    if footer.end != len(measurements):
        raise RecordError(f"{path}: holds {len(measurements)} measurements, its footer says {footer.end}")
    return Record(header, measurements, footer)


def read_records(paths: list[Path]) -> Iterator[Record | RecordError]:
    """Read many: a file that cannot be read is yielded as its error, so that the rest can be shown."""
    for path in paths:
        try:
            yield read_record(path)
        except RecordError as error:
            yield error
