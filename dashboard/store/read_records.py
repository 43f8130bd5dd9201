"""Our record files, many at a time, as rows.

``groundspeed.records.read_record`` is the reference; this reader takes the same lines into leaner structs, because a
dashboard opens hundreds of thousands of measurements at once. Tests hold the two together.
"""

from __future__ import annotations

import functools
import json
import zlib
from typing import Annotated, Any

import msgspec
import numpy as np

from dashboard.store.doubles import place_of
from dashboard.store.errors import Unreadable
from dashboard.store.files import LIMIT
from dashboard.store.summaries import Floats, Lists, Summary
from dashboard.store.table import Table
from dashboard.store.times import milliseconds
from groundspeed.analysis.roofline import ceiling
from groundspeed.analysis.speedup import BASELINE
from groundspeed.records import QUANTITIES, SCHEMA, Accuracy, Footer, Header

_NS = 1e-9
_Timed = tuple[dict[str, Summary], Floats]  # by quantity, in ns; and speedups over the baseline, round by round
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _Samples(msgspec.Struct, frozen=True, gc=False):
    """The quantities of records.QUANTITIES, in nanoseconds."""

    device_cold: list[float] = []
    device_hot: list[float] = []
    call: list[float] = []
    host: list[float] = []


_NONE = _Samples()


class _Line(msgspec.Struct, gc=False):
    """The part of records.Measurement that rows are made of."""

    implementation: str
    dtype: str
    shape: dict[str, int | str]
    status: str
    case_digest: str = ""
    implementation_digest: str = ""
    failure: str | None = None
    reason: str = ""
    unstable: str = ""
    apart: bool = False
    timer: str = ""
    samples: _Samples = _NONE
    prepare_ns: float | None = None
    first_run_ns: float | None = None
    peak_memory_bytes: float | None = None
    prepared_memory_bytes: Count = 0
    energy_nj: float | None = None
    accuracy: Accuracy | None = None
    flops: Count = 0
    bytes_read: Count = 0
    bytes_written: Count = 0
    bus_bytes: Count = 0
    items: Count = 0
    tuned: str = ""


_LABELS = (
    *("implementation", "dtype", "status", "reason", "unstable", "timer"),
    *("case_digest", "implementation_digest", "tuned"),
)
_line = msgspec.json.Decoder(_Line)
_header = msgspec.json.Decoder(Header)
_footer = msgspec.json.Decoder(Footer)


def add_record(path: str, payload: bytes, rows: Table, runs: Table) -> None:
    """Append one record file, given its bytes on disk. Raises Unreadable, and then has appended nothing."""
    header, lines, (summaries, speedups), footer = _parse(_unpack(payload))
    shared = {
        "machine": header.machine,
        "run_id": header.run_id,
        "source": path,
        "project": "groundspeed",
        "commit": header.commit,
        "commit_time": milliseconds(header.commit_time),
        "started": milliseconds(header.started),
        "operator": header.operator,
        "environment": header.matrix,
    }
    if lines:  # a run in which nothing was measured is a run without rows
        own = _own_columns(lines, header.bound) | _timed_columns(summaries)
        own |= _rates(header, lines, own) | {"speedup_eager": speedups}
        rows.add(len(lines), shared, own)
    described = {name: _dump(getattr(header, name)) for name in ("ladders", "ideas", "missing")}
    run = {
        "dirty": header.dirty,
        "misplaced": None if path == place_of(header.machine, header.run_id, header.operator) else True,
        "tier": header.tier,
        "bound": header.bound,
        "command": header.command,
        "details": _dump(msgspec.to_builtins(header.environment)),
        "ceilings": _dump(msgspec.to_builtins(header.ceilings)) if header.ceilings else "",
        "seconds": sum(footer.seconds.values()) or None,
        "rows": len(lines),
    }
    runs.add(1, {**shared, **described, **run})


def _unpack(payload: bytes) -> bytes:
    """Gunzip, never to more than a file may hold."""
    unpacker = zlib.decompressobj(wbits=31)
    try:
        text = unpacker.decompress(payload, LIMIT)
    except zlib.error as error:
        raise Unreadable(f"is not a whole gzip file: {error}") from error
    if unpacker.unconsumed_tail:
        raise Unreadable(f"unpacks to more than {LIMIT >> 20} MiB")
    if not unpacker.eof:
        raise Unreadable("is cut short")
    return text


def _parse(text: bytes) -> tuple[Header, list[_Line], _Timed, Footer]:
    """Header, measurements without their samples, what is kept of the samples, footer."""
    end = text.rfind(b"\n")
    start, stop = text.find(b"\n", 0, end) + 1, text.rfind(b"\n", 0, end) + 1
    if not start:
        raise Unreadable("holds no header and footer")
    first, last = text[: start - 1], text[stop:end]
    try:
        schema = msgspec.json.decode(first).get("schema", SCHEMA)
        if schema != SCHEMA:
            raise Unreadable(f"schema {schema}, this groundspeed reads {SCHEMA}: upgrade groundspeed")
        header, footer = _header.decode(first), _footer.decode(last)
        lines, timed = _measurements(text, start, stop)
    except (msgspec.DecodeError, AttributeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(f"is not a whole record: {error}") from error
    if footer.end != len(lines):
        raise Unreadable(f"holds {len(lines)} measurements, its footer says {footer.end}")
    return header, lines, timed, footer


def _measurements(text: bytes, start: int, stop: int) -> tuple[list[_Line], _Timed]:
    """Decode the lines from ``start`` up to ``stop``, each with its newline.

    One by one: the float objects of one line are packed and freed before those of the next are made.
    """
    view = memoryview(text)
    lists = [Lists() for _ in QUANTITIES]
    cold, hot, call, host = (each.values.fromlist for each in lists)
    cold_n, hot_n, call_n, host_n = (each.lengths.append for each in lists)
    lines = []
    while start < stop:
        end = text.index(b"\n", start)
        line = _line.decode(view[start:end])
        start = end + 1
        samples, line.samples = line.samples, _NONE
        # Spelt out: a loop over the quantities would cost as much as packing them.
        cold(samples.device_cold)
        cold_n(len(samples.device_cold))
        hot(samples.device_hot)
        hot_n(len(samples.device_hot))
        call(samples.call)
        call_n(len(samples.call))
        host(samples.host)
        host_n(len(samples.host))
        lines.append(line)
    summaries = {name: each.summarise() for name, each in zip(QUANTITIES, lists, strict=True)}
    return lines, (summaries, lists[QUANTITIES.index("device_cold")].median_ratios(_baselines(lines)))


def _baselines(lines: list[_Line]) -> list[int]:
    """The position of the baseline's line on the case of every line; -1 where either is not ok or of other rounds.

    As groundspeed.analysis.speedup has it, of which the last of several lines counts.
    """
    case = [(line.dtype, *line.shape.items()) for line in lines]
    at = {case[i]: i for i, line in enumerate(lines) if line.implementation == BASELINE}
    of_ok = {key: i for key, i in at.items() if lines[i].status == "ok"}
    paired = [line.status == "ok" and not line.apart for line in lines]
    return [of_ok.get(key, -1) if one else -1 for key, one in zip(case, paired, strict=True)]


def _own_columns(lines: list[_Line], bound: str) -> dict[str, Any]:
    """Columns that differ by row, in base units. Labels that no row has are left out: they cost nothing then."""
    of = dict(zip(_Line.__struct_fields__, zip(*map(msgspec.structs.astuple, lines), strict=True), strict=True))
    labels = [_shape_labels(dtype, tuple(shape.items())) for dtype, shape in zip(of["dtype"], of["shape"], strict=True)]
    shapes, cases, facets = zip(*labels, strict=True)
    columns: dict[str, Any] = {
        "backend": [name.partition("_")[0] for name in of["implementation"]],
        "shape": shapes,
        "case": cases,
        "facets": facets,
        "failure": [failure or "" for failure in of["failure"]],
        "first_call": [
            None if prepare is None or first is None else (prepare + first) * _NS
            for prepare, first in zip(of["prepare_ns"], of["first_run_ns"], strict=True)
        ],
        "peak_memory": [
            None if peak is None else peak + prepared
            for peak, prepared in zip(of["peak_memory_bytes"], of["prepared_memory_bytes"], strict=True)
        ],
        "energy": [None if energy is None else energy * _NS for energy in of["energy_nj"]],
        "max_abs_error": [accuracy.max_abs if accuracy else None for accuracy in of["accuracy"]],
        "norm_error": [accuracy.norm if accuracy else None for accuracy in of["accuracy"]],
        "bytes": _moved(of, bound),
        "flops": [flops or None for flops in of["flops"]],
        "items": [items or None for items in of["items"]],
    }
    return columns | {name: of[name] for name in _LABELS if any(of[name])}


def _timed_columns(summaries: dict[str, Summary]) -> dict[str, Any]:
    """Medians, intervals and percentiles in seconds; NaN where nothing was timed."""
    cold, hot, call, host = (summaries[quantity] for quantity in QUANTITIES)
    columns: dict[str, Any] = {"n": np.where(cold.n > 0, cold.n, np.where(hot.n > 0, hot.n, call.n))}
    for name, of, parts in (
        ("device_cold", cold, ("low", "high", "p95", "p99")),
        ("device_hot", hot, ("low", "high", "p99")),
        ("call", call, ("low", "high", "p99")),
        ("host", host, ()),
    ):
        columns[name] = of.median * _NS
        columns |= {f"{name}_{part}": getattr(of, part) * _NS for part in parts}
    return columns


def _rates(header: Header, lines: list[_Line], columns: dict[str, Any]) -> dict[str, Any]:
    """What is had by dividing by, or into, the cold device time."""
    least = functools.cache(functools.partial(_least_seconds, header))
    fastest = [least(line.dtype, line.flops, line.bytes_read, line.bytes_written, line.bus_bytes) for line in lines]
    cold = columns["device_cold"]
    cold = np.where(cold > 0, cold, np.nan)
    return {
        "bytes_per_s": np.array(columns["bytes"], np.float64) / cold,
        "flops_per_s": np.array(columns["flops"], np.float64) / cold,
        "items_per_s": np.array(columns["items"], np.float64) / cold,
        "roofline": np.array(fastest, np.float64) / cold,
    }


def _moved(of: dict[str, Any], bound: str) -> list[int | None]:
    """Bytes that a bandwidth is of: between GPUs where an operator is bound by that, else the device memory's."""
    moved = zip(of["bytes_read"], of["bytes_written"], of["bus_bytes"], strict=True)
    return [(bus if bound == "peer" and bus else read + written) or None for read, written, bus in moved]


def _least_seconds(header: Header, dtype: str, flops: int, read: int, written: int, bus: int) -> float | None:
    """The least time that the run's own ceilings allow, in seconds."""
    least = ceiling(header.ceilings, header.bound, dtype, flops, (read, written), bus)
    return None if least is None else least.least_ns * _NS


@functools.lru_cache(maxsize=4096)
def _shape_labels(dtype: str, shape: tuple[tuple[str, int | str], ...]) -> tuple[str, str, str]:
    """The shape and the case for reading, as records.Measurement has them, and the shape as JSON."""
    label = ",".join(f"{name}={value}" for name, value in shape)
    return label, f"{dtype} {label}", json.dumps(dict(shape))


def _dump(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=False) if value else ""
