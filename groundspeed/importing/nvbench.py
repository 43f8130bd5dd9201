"""NVBench's JSON (``--json``, and ``--jsonbin``, which keeps every sample beside it) as records.

Its cold GPU times are between CUDA events behind a blocking kernel, the L2 emptied by a memset: kept as ``device_cold``
under a timer of their own, since other timers read less on kernels bound by memory (docs/measuring.md). Its batch mean,
caches hot and launches back to back, is kept as ``device_hot``. Its CPU times begin when the blocking kernel ends, so
they are no call times, and are left out.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from groundspeed.analysis.foreign import NotResults, check_whole, reason
from groundspeed.importing.names import Named, named, slug, slugs
from groundspeed.importing.whole import TIER, whole
from groundspeed.machine import machine_of
from groundspeed.nvml import Gpu
from groundspeed.records import Environment, Header, Measurement, Record

TOOL = "nvbench"
VERSION = 1  # of its JSON, the major part
SAMPLES = "nv/json/bin:nv/cold/sample_times"
COLD = ("nv/cold/time/gpu/median", "nv/cold/time/gpu/mean")  # the first that a state has
HOT = "nv/batch/time/gpu/mean"
COUNT = "nv/cold/sample_size"
RATE = "nv/cold/bw/item_rate"  # items a second, over the mean


class _Version(Struct):
    json: dict[str, Any] | None = None


class _Meta(Struct):
    version: _Version | None = None
    argv: list[Any] | None = None


class _Versioned(Struct):
    meta: _Meta | None = None


class _Axis(Struct):
    name: str


class _Value(Struct):
    name: str
    type: str


class _Summary(Struct):
    tag: str
    data: list[_Value] | None = None


class _State(Struct):
    axis_values: list[_Axis] | None
    summaries: list[_Summary] | None = None


class _Benchmark(Struct):
    name: str
    states: list[_State] | None = None


class _Device(Struct):
    id: int
    name: str | None = None
    sm_version: int | None = None
    number_of_sms: int | None = None
    l2_cache_size: int | None = None
    global_memory_size: int | None = None


class _File(Struct):
    """What is read of a file of version 1."""

    benchmarks: list[_Benchmark]
    devices: list[_Device] | None = None


def is_nvbench(document: Mapping[str, Any]) -> bool:
    meta = document.get("meta")
    written_by = meta.get("version") if isinstance(meta, dict) else None
    by_nvbench = isinstance(written_by, dict) and "nvbench" in written_by
    return "benchmarks" in document and ("devices" in document or by_nvbench)


def read_nvbench(document: Mapping[str, Any], path: Path) -> tuple[Record, ...]:
    """One record a GPU and benchmark. Their headers' machine is empty where the file names no GPU.

    ``path`` is where the document lies, and its samples beside it. Raises NotResults, without the file's name.
    """
    try:
        check_whole(document, _Versioned, "NVBench")
        _check_version(document)
        check_whole(document, _File, "NVBench")
        return tuple(_records(document, path))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, NotResults):
            raise
        raise NotResults(f"is no whole file of NVBench: {reason(error)}") from error


def _check_version(document: Mapping[str, Any]) -> None:
    version = ((document.get("meta") or {}).get("version") or {}).get("json") or {}
    if version.get("major", VERSION) != VERSION:
        raise NotResults(f"NVBench's JSON version {version.get('string', version['major'])}, {VERSION}.x is read")


def _records(document: Mapping[str, Any], path: Path) -> Iterator[Record]:
    devices = {device["id"]: device for device in document.get("devices") or []}
    argv = (document.get("meta") or {}).get("argv") or []
    names = slugs(str(benchmark["name"]) for benchmark in document["benchmarks"])
    found: dict[tuple[Any, str], list[Measurement]] = {}
    for benchmark in document["benchmarks"]:
        for state in benchmark.get("states") or []:
            axes = {axis["name"]: axis.get("value", axis.get("input_string")) for axis in state["axis_values"] or []}
            of = named(axes)
            operator = slug(of.operator) if of.operator else names[str(benchmark["name"])]
            row = _measurement(str(benchmark["name"]), state, of, path)
            found.setdefault((state.get("device"), operator), []).append(row)
    when = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")  # it writes no time itself
    for (device, operator), rows in found.items():
        yield whole(_header(devices.get(device) or {}, when, " ".join(map(str, argv))), operator, rows)


def _measurement(benchmark: str, state: Mapping[str, Any], of: Named, path: Path) -> Measurement:
    row = Measurement(
        of.implementation or TOOL,
        of.dtype,
        of.shape,
        status="skipped",
        timer=TOOL,
        reason=str(state.get("skip_reason") or "NVBench gave no cold GPU time"),
        notes=[f"imported from NVBench: {benchmark}"],
    )
    if state.get("is_skipped"):
        return row
    summaries = {summary["tag"]: _values(summary) for summary in state.get("summaries") or []}
    seconds, doubt = _cold(summaries, path)
    if not seconds:
        return row
    hot, mean = _positive(summaries, HOT), _positive(summaries, COLD[-1])
    samples = {"device_cold": [x * 1e9 for x in seconds]} | ({"device_hot": [hot * 1e9]} if hot else {})
    items = round(_positive(summaries, RATE) * mean)
    return replace(row, status="ok", reason="", unstable=doubt, samples=samples, items=items)


def _cold(summaries: Mapping[str, Mapping[str, Any]], path: Path) -> tuple[tuple[float, ...], str]:
    """Cold GPU times in seconds: all samples where they were kept, else one value, with what speaks against it."""
    seconds = _samples(summaries.get(SAMPLES), path)
    tag = next((tag for tag in COLD if _positive(summaries, tag)), "")
    if seconds or not tag:
        return seconds, ""
    count = int(summaries.get(COUNT, {}).get("value") or 0)
    kept = f"the {tag.rpartition('/')[2]} of {count} samples"
    return (_positive(summaries, tag),), f"the file has {kept} alone, so no interval: --jsonbin keeps all"


def _values(summary: Mapping[str, Any]) -> dict[str, Any]:
    """A summary's values by name; NVBench writes numbers as texts, and null for what is not finite."""
    kinds = {"float64": float, "int64": int}
    found = {}
    for value in summary.get("data") or []:
        if value.get("value") is not None:
            try:
                found[value["name"]] = kinds.get(value["type"], str)(value["value"])
            except (ValueError, TypeError) as error:
                what = f"{summary['tag']}: {value['name']}: expected {value['type']}, got {value['value']!r}"
                raise NotResults(f"is no whole file of NVBench: {what}") from error
    return found


def _positive(summaries: Mapping[str, Mapping[str, Any]], tag: str) -> float:
    """A summary's value; 0 where there is none that is a finite positive number."""
    value = summaries.get(tag, {}).get("value", 0.0)
    return value if math.isfinite(value) and value > 0 else 0.0


def _samples(told: Mapping[str, Any] | None, path: Path) -> tuple[float, ...]:
    """The samples in seconds, little-endian float32, of the file that a summary names; none where it is not there.

    It is looked for beside the JSON and nowhere else, whatever path the machine that wrote it recorded.
    """
    if told is None:
        return ()
    recorded = PurePosixPath(str(told["filename"]))
    file = path.parent / recorded.parent.name / recorded.name
    if recorded.name in ("", "..") or recorded.parent.name == ".." or not file.is_file():
        return ()
    payload = file.read_bytes()
    if len(payload) != 4 * told["size"]:
        raise NotResults(f"{file.name} holds {len(payload)} bytes, expected {told['size']} samples of 4")
    values = array("f", payload)
    if array("h", b"\1\0")[0] != 1:  # a machine that writes the high byte first
        values.byteswap()
    return tuple(values)


def _header(device: Mapping[str, Any], started: str, command: str) -> Header:
    name, sm = str(device.get("name") or ""), int(device.get("sm_version") or 0)
    environment = Environment(
        device="cuda",
        device_name=name,
        python="",
        os="",
        device_count=1,
        capability=f"{sm // 100}.{sm % 100 // 10}" if sm else "",
        multiprocessors=int(device.get("number_of_sms") or 0),
        l2_bytes=int(device.get("l2_cache_size") or 0),
        memory_bytes=int(device.get("global_memory_size") or 0),
    )
    machine = machine_of((Gpu(name, environment.memory_bytes, ""),)) if name else ""
    return Header("", "", machine, started, environment, tier=TIER, command=command)
