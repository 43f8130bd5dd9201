"""pytest-benchmark's JSON beside asv's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dashboard.store import open_store, samples_of
from groundspeed.analysis import stats
from tests.store import make

DATA = make.samples(8e-8 * 1e9, 40)
DOCUMENT: dict[str, Any] = {
    "machine_info": {
        "node": "vm",
        "python_implementation": "CPython",
        "python_version": "3.11.7",
        "system": "Linux",
        "cpu": {"brand_raw": "A CPU", "flags": ["adx", "aes"]},
    },
    "commit_info": {"id": make.COMMIT, "time": "2026-01-01T10:00:00+02:00", "dirty": True, "branch": "main"},
    "benchmarks": [
        {
            "name": "test_sum[1]",
            "fullname": "tests/test_x.py::test_sum[1]",
            "params": {"n": 1},
            "param": "1",
            "stats": {"median": 8e-8, "mean": 9e-8, "rounds": 40, "data": [v * 1e-9 for v in DATA]},
        },
        {
            "name": "test_plain",
            "fullname": "tests/test_x.py::test_plain",
            "params": None,
            "param": None,
            "stats": {"median": 2e-8, "mean": 3e-8, "rounds": 12},
        },
    ],
    "datetime": "2026-01-01T09:00:00.123456+00:00",
    "version": "5.1.0",
}


def _write(results: Path, document: object, name: str = "0001_x.json") -> Path:
    folder = results / "Linux-CPython-3.11-64bit"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_rows(tmp_path: Path) -> None:
    _write(tmp_path, DOCUMENT)
    shown = open_store(tmp_path).snapshot
    one, other = shown.measurements.to_dicts()
    expected = {
        "project": "pytest-benchmark",
        "machine": "vm",
        "operator": "tests/test_x.py::test_sum",
        "implementation": "",
        "shape": "n=1",
        "facets": '{"n": "1"}',
        "value": 8e-8,
        "unit": "seconds",
        "direction": "lower",
        "status": "ok",
        "n": 40,
        "commit": make.COMMIT,
        "environment": "CPython 3.11.7",
    }
    assert {name: one[name] for name in expected} == expected
    low, high = stats.median_interval([v * 1e-9 for v in DATA])
    assert (one["value_low"], one["value_high"]) == pytest.approx((low, high), rel=1e-6)
    assert (other["operator"], other["shape"], other["value_low"]) == ("tests/test_x.py::test_plain", "", None)
    assert str(one["commit_time"]).startswith("2026-01-01 08:00")
    (run,) = shown.runs.to_dicts()
    assert run["dirty"] and json.loads(run["details"])["cpu"] == "A CPU"


def test_samples(tmp_path: Path) -> None:
    _write(tmp_path, DOCUMENT)
    one, other = open_store(tmp_path).snapshot.measurements.to_dicts()
    assert samples_of(tmp_path, one).quantities["value"] == pytest.approx([v * 1e-9 for v in DATA])
    assert samples_of(tmp_path, one).measurement["stats"]["mean"] == 9e-8
    assert samples_of(tmp_path, other).quantities == {}


def test_outside_a_repository_there_is_no_commit(tmp_path: Path) -> None:
    _write(tmp_path, {**DOCUMENT, "commit_info": {"id": "unversioned", "time": None, "dirty": False}})
    row = open_store(tmp_path).snapshot.measurements.to_dicts()[0]
    assert (row["commit"], row["commit_time"]) == ("", None)


@pytest.mark.parametrize(
    "broken", [{"benchmarks": 3}, {"benchmarks": [{"name": "x"}]}, {"machine_info": []}, {"commit_info": "x"}]
)
def test_a_wrong_file_is_named(tmp_path: Path, broken: dict[str, Any]) -> None:
    _write(tmp_path, DOCUMENT)
    _write(tmp_path, {**DOCUMENT, **broken}, "0002_bad.json")
    shown = open_store(tmp_path).snapshot
    assert shown.measurements.height == 2
    assert shown.problems["file"][0].endswith("0002_bad.json") and "pytest-benchmark" in shown.problems["reason"][0]


def test_what_pytest_benchmark_itself_writes(tmp_path: Path) -> None:
    """The plugin's own output, made here, so that its format and ours cannot drift apart unseen."""
    pytest.importorskip("pytest_benchmark")
    import subprocess
    import sys

    module = tmp_path / "test_made.py"
    module.write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', [3])\n"
        "def test_sum(benchmark, n):\n"
        "    benchmark.pedantic(sum, (range(n),), rounds=9)\n",
        encoding="utf-8",
    )
    results = tmp_path / "results" / "vm"
    results.mkdir(parents=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}"]
    command += [f"--benchmark-json={results / 'made.json'}", "--benchmark-save-data", str(module)]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    shown = open_store(tmp_path / "results").snapshot
    (row,) = shown.measurements.to_dicts()
    assert shown.problems.is_empty()
    assert (row["operator"], row["shape"], row["n"]) == ("test_made.py::test_sum", "n=3", 9)
    assert row["value"] > 0 and len(samples_of(tmp_path / "results", row).quantities["value"]) == 9
