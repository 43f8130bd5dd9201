"""Small result files for the store's tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from groundspeed.records import (
    Accuracy,
    Ceilings,
    Environment,
    Footer,
    Header,
    Measurement,
    Record,
    record_path,
    write_record,
)

COMMIT = "0123456789abcdef0123456789abcdef01234567"
COLUMNS = [
    *("result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b"),
    *("stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples", "profile"),
]


def samples(median: float, count: int = 30, seed: int = 0) -> list[float]:
    """ns, about ``median``."""
    return (median * np.random.default_rng(seed).lognormal(0, 0.01, count)).round(1).tolist()


def measurement(implementation: str = "torch_eager", **changes: Any) -> Measurement:
    time = changes.pop("time", 10_000.0)
    given = {
        "implementation": implementation,
        "dtype": "float32",
        "shape": {"M": 4096, "N": 1024},
        "status": "ok",
        "case_digest": "case1",
        "implementation_digest": "impl1",
        "timer": "cupti",
        "samples": {
            "device_cold": samples(time, 30, 1),
            "device_hot": samples(time * 0.8, 25, 2),
            "call": samples(time + 9000, 11, 3),
            "host": samples(5000.0, 7, 4),
        },
        "prepare_ns": 2e9,
        "first_run_ns": 1e6,
        "peak_memory_bytes": 33_554_000,
        "prepared_memory_bytes": 432,
        "energy_nj": 4e6,
        "accuracy": Accuracy(1e-6, 2e-6, 3e-7, 0.5),
        "flops": 8_000_000,
        "bytes_read": 16_777_216,
        "bytes_written": 16_777_216,
        "items": 4096,
    }
    return Measurement(**{**given, **changes})


def header(**changes: Any) -> Header:
    given = {
        "run_id": "20260101T000000Z-aaaaaa",
        "operator": "softmax",
        "machine": "nvidia-h200",
        "started": "2026-01-01T01:00:00+00:00",
        "commit": COMMIT,
        "commit_time": "2026-01-01T00:00:00+00:00",
        "environment": Environment("cuda", "NVIDIA H200", "3.12", "Linux", driver="580", torch="2.11"),
        "ceilings": Ceilings(copy=4.3e12, read=4.4e12, write=4.7e12, matmul={"float32": 51e12}),
        "command": "groundspeed run softmax",
    }
    return Header(**{**given, **changes})


def record(results: Path, *measurements: Measurement, **changes: Any) -> Path:
    """A record file of these measurements; ``changes`` go to the header."""
    top = header(**changes)
    path = record_path(results, top.machine, top.run_id, top.operator)
    write_record(path, Record(top, measurements, Footer(len(measurements), {"measure": 2.0, "compile": 0.5})))
    return path


def asv(results: Path, found: dict[str, Any], /, machine: str = "box", commit: str = COMMIT, **changes: Any) -> Path:
    """An asv result file, version 2, with machine.json beside it; ``found`` maps benchmarks to rows of columns."""
    folder = results / machine
    folder.mkdir(parents=True, exist_ok=True)
    described = folder / "machine.json"
    if not described.exists():
        described.write_text(json.dumps({"machine": machine, "cpu": "a CPU", "version": 1}), encoding="utf-8")
    document = {
        "commit_hash": commit,
        "env_name": "virtualenv-py3.12",
        "date": 1_760_000_000_000,
        "params": {"machine": machine, "python": "3.12", "os": "Linux"},
        "python": "3.12",
        "requirements": {"numpy": ""},
        "env_vars": {},
        "result_columns": COLUMNS,
        "results": found,
        "durations": {},
        "version": 2,
        **changes,
    }
    path = folder / f"{document['commit_hash'][:8]}-{document['env_name']}.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def benchmarks(results: Path, **entries: tuple[str, list[str]]) -> None:
    """A benchmarks.json: name -> (unit, parameter names); "__" in a name stands for a dot."""
    document: dict[str, Any] = {"version": 2}
    for name, (unit, names) in entries.items():
        dotted = name.replace("__", ".")
        document[dotted] = {"name": dotted, "unit": unit, "param_names": names, "params": [], "type": "time"}
    results.mkdir(parents=True, exist_ok=True)
    (results / "benchmarks.json").write_text(json.dumps(document), encoding="utf-8")
