"""asv's copies of our own measurements are not counted twice."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from dashboard.store import open_store
from dashboard.store.twins import QUESTIONS, operator_of
from tests.store import make

PARAMS = [["'torch_eager'"], ["'float32'"], ["'M=4096,N=1024'"]]
FOUND = {
    "device_time.softmax.cold": [[1e-5], PARAMS],
    "device_time.softmax.hot": [[8e-6], PARAMS],
    "call_time.softmax": [[2e-5], PARAMS],
    "device_time.relu.cold": [[1e-6], PARAMS],
    "suite.time_softmax": [[1.0], []],
}


def _operators(results: Path) -> list[str]:
    return sorted(open_store(results).snapshot.measurements["operator"])


def test_the_questions_are_the_modules_of_the_suite() -> None:
    suite = Path(__file__).resolve().parents[2] / "benchmarks"
    modules = {path.stem for path in suite.glob("*.py") if path.stem != "__init__"}
    assert modules == QUESTIONS


def test_operator_of() -> None:
    assert operator_of("device_time.softmax.cold") == "softmax"
    assert operator_of("error.matmul") == "matmul"
    assert operator_of("suite.softmax.cold") == operator_of("device_time") == operator_of("") == ""


def test_only_sweeps_that_our_records_hold_are_hidden(tmp_path: Path) -> None:
    make.asv(tmp_path, FOUND, machine="nvidia-h200")
    make.record(tmp_path, make.measurement(), operator="softmax")
    assert _operators(tmp_path) == ["device_time.relu.cold", "softmax", "suite.time_softmax"]


def test_other_machines_and_commits_are_no_copies(tmp_path: Path) -> None:
    make.asv(tmp_path, FOUND, machine="box")
    make.asv(tmp_path, FOUND, machine="nvidia-h200", commit="f" * 40)
    make.record(tmp_path, make.measurement(), operator="softmax")
    assert len(_operators(tmp_path)) == 2 * len(FOUND) + 1


def test_a_record_that_comes_or_goes_hides_or_shows_them(tmp_path: Path) -> None:
    make.asv(tmp_path, FOUND, machine="nvidia-h200")
    store = open_store(tmp_path)
    assert store.snapshot.measurements.height == len(FOUND)
    path = make.record(tmp_path, make.measurement(), operator="softmax")
    assert store.refresh()
    assert store.snapshot.measurements.height == len(FOUND) - 3 + 1
    assert store.snapshot.latest.height == len(FOUND) - 3 + 1
    path.unlink()
    assert store.refresh()
    assert store.snapshot.measurements.filter(pl.col("project") == "asv").height == len(FOUND)
