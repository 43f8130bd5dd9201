"""Real results of other projects, where they are at hand."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import polars as pl
import pytest

from dashboard.store import open_store
from dashboard.store.queries import history

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def _copy(name: str, to: Path) -> Path:
    source = SHARED / name
    if not source.is_dir():
        pytest.skip(f"{name} is not at hand")
    return Path(shutil.copytree(source, to / "results"))


def test_sunpy_every_value_equals_the_file(tmp_path: Path) -> None:
    results = _copy("sunpy-benchmarks/results", tmp_path)
    shown = open_store(results).snapshot
    assert shown.problems.is_empty()
    expected = {}
    for path in results.glob("*/*.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        for name, row in document.get("results", {}).items():
            expected[path.relative_to(results).as_posix(), name] = row[0][0]
    found = {
        (source, name): value for source, name, value in shown.measurements.select("source", "operator", "value").rows()
    }
    assert found == expected and len(found) > 10_000
    one = history(shown.measurements.filter(pl.col("operator") == "benchmarks_for_map.TimeSuite.time_create_sunpy_map"))
    assert one["commit_time"].is_sorted() and one["ordinal"].to_list() == list(range(one.height))
    assert set(shown.measurements["unit"]) == {"seconds", "bytes"}


def test_asv_examples_odd_files_are_named_and_the_rest_shown(tmp_path: Path) -> None:
    results = _copy("asv-example-results/test/example_results", tmp_path)
    shown = open_store(results).snapshot
    reasons = {Path(row["file"]).name[:8]: row["reason"] for row in shown.problems.to_dicts()}
    assert reasons.keys() == {"aaaaaaaa", "bbbbbbbb", "cccccccc"}
    assert "not whole JSON" in reasons["aaaaaaaa"] and "not-cheetah" in reasons["cccccccc"]
    files = [path for path in results.glob("*/*.json") if path.name != "machine.json"]
    assert shown.runs.height == len(files) - 3
    expected = 0
    for path in files:
        if path.name[:8] not in reasons:
            for value in json.loads(path.read_text(encoding="utf-8"))["results"].values():
                each = value["result"] if isinstance(value, dict) else value
                expected += sum(
                    1 for v in (each if isinstance(each, list) else [each]) if v is not None and not math.isnan(v)
                )
    assert shown.measurements.filter(pl.col("status") == "ok").height == expected
    assert shown.measurements.filter(pl.col("status") == "ok")["value"].null_count() == 0
