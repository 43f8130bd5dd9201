"""Files as pytest-benchmark and NVBench write them, their fields spelt as theirs."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SECONDS = [1.0e-6, 1.1e-6, 1.2e-6, 1.3e-6, 1.4e-6, 1.5e-6, 1.6e-6, 1.7e-6, 1.8e-6]


def pytest_test(name: str, params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    ids = "-".join(str(value) for value in (params or {}).values())
    return {
        "group": None,
        "name": f"{name}[{ids}]" if ids else name,
        "fullname": f"tests/test_x.py::{name}[{ids}]" if ids else f"tests/test_x.py::{name}",
        "params": params,
        "param": ids or None,
        "extra_info": {},
        "options": {"timer": "perf_counter"},
        "stats": {"median": 1.4e-6, "mean": 1.4e-6, "rounds": 9, "iterations": 1, "data": SECONDS},
        **more,
    }


def pytest_document(*tests: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "machine_info": {
            "node": "a-host",
            "python_version": "3.11.7",
            "system": "Linux",
            "release": "6.1",
            "cpu": {"brand_raw": "AMD EPYC 9474F 48-Core Processor", "count": 96},
        },
        "commit_info": {"id": COMMIT, "time": "2026-01-01T10:00:00+02:00", "dirty": False, "branch": "main"},
        "benchmarks": list(tests),
        "datetime": "2026-01-02T09:00:00.250000+00:00",
        "version": "5.1.0",
        **more,
    }


def summary(tag: str, value: object, kind: str = "float64") -> dict[str, Any]:
    data = [{"name": "value", "type": kind, "value": value if value is None else str(value)}]
    return {"tag": tag, "name": tag, "description": "", "hint": "duration", "data": data}


def state(axes: dict[str, object], summaries: list[dict[str, Any]], device: int = 0, **more: Any) -> dict[str, Any]:
    values = [{"name": name, "type": "string", "value": str(value)} for name, value in axes.items()]
    return {
        "name": f"Device={device}",
        "device": device,
        "type_config_index": 0,
        "axis_values": values or None,
        "summaries": summaries or None,
        "is_skipped": False,
        **more,
    }


def timed(mean: float, median: float | None = None) -> list[dict[str, Any]]:
    found = [summary("nv/cold/sample_size", 40, "int64"), summary("nv/cold/time/gpu/mean", mean)]
    found += [summary("nv/cold/time/gpu/median", median)] if median else []
    return [*found, summary("nv/cold/time/cpu/mean", mean * 3), summary("nv/batch/time/gpu/mean", mean / 2)]


def nvbench_document(*benchmarks: dict[str, Any], devices: tuple[str, ...] = ("NVIDIA H200",)) -> dict[str, Any]:
    return {
        "meta": {
            "argv": ["bin/softmax", "--json", "out.json"],
            "version": {"json": {"major": 1, "minor": 0, "patch": 0, "string": "1.0.0"}, "nvbench": {"major": 0}},
        },
        "devices": [
            {
                "id": number,
                "name": name,
                "sm_version": 900,
                "number_of_sms": 132,
                "global_memory_size": 150 * 10**9,
                "l2_cache_size": 60 << 20,
            }
            for number, name in enumerate(devices)
        ],
        "benchmarks": list(benchmarks),
    }


def benchmark(name: str, *states: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "index": 0, "devices": [0], "axes": [], "states": list(states)}


def samples_beside(path: Path, seconds: list[float], recorded: str = "") -> dict[str, Any]:
    """The summary that names a file of samples, and the file where NVBench leaves it: <json>-bin/0.bin."""
    folder = path.parent / f"{path.name}-bin"
    folder.mkdir(exist_ok=True)
    (folder / "0.bin").write_bytes(struct.pack(f"<{len(seconds)}f", *seconds))
    data = [
        {"name": "filename", "type": "string", "value": recorded or f"{folder.name}/0.bin"},
        {"name": "size", "type": "int64", "value": str(len(seconds))},
    ]
    return {"tag": "nv/json/bin:nv/cold/sample_times", "name": "Samples Times File", "data": data}


def write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path
