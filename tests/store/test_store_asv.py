"""asv's result files of any project: both versions, odd values, odd names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dashboard.store import open_store, samples_of
from dashboard.store.asv_format import guessed_unit, readable
from dashboard.store.lenient_json import loads
from tests.store import make

PARAMS = [["10", "100"], ["'a'", "'NaN'"]]


def _rows(results: Path) -> list[dict[str, Any]]:
    return open_store(results).snapshot.measurements.to_dicts()


def test_a_parametrised_benchmark_is_one_row_a_combination(tmp_path: Path) -> None:
    make.benchmarks(tmp_path, suite__time_sort=("seconds", ["n", "kind"]))
    low, high = [0.9, 1.9, None, None], [1.1, 2.1, None, None]
    values = [1.0, 2.0, None, float("nan")]
    row = [values, PARAMS, "v1", 1_760_000_001_000, 3.5, low, high, low, high, [5, 5], [10, 10, None, None]]
    make.asv(tmp_path, {"suite.time_sort": row})
    rows = _rows(tmp_path)
    assert [r["shape"] for r in rows] == ["n=10,kind=a", "n=10,kind=NaN", "n=100,kind=a", "n=100,kind=NaN"]
    assert json.loads(rows[1]["facets"]) == {"n": "10", "kind": "NaN"}
    assert [r["value"] for r in rows] == [1.0, 2.0, None, None]
    assert [r["status"] for r in rows] == ["ok", "ok", "failed", "skipped"]
    assert [bool(r["reason"]) for r in rows] == [False, False, True, True]
    assert rows[0]["value_low"] == pytest.approx(0.9) and rows[0]["value_high"] == pytest.approx(1.1)
    assert (rows[0]["n"], rows[2]["n"]) == (10, None)
    same = {
        "operator": "suite.time_sort",
        "implementation": "",
        "dtype": "",
        "unit": "seconds",
        "direction": "lower",
        "project": "asv",
        "machine": "box",
        "environment": "virtualenv-py3.12",
        "commit": make.COMMIT,
        "case_digest": "v1",
        "device_cold": None,
    }
    assert all({name: r[name] for name in same} == same for r in rows)
    assert rows[0]["commit_time"].timestamp() == 1_760_000_000 and rows[0]["started"].timestamp() == 1_760_000_001


def test_version_1_files(tmp_path: Path) -> None:
    found = {
        "time_plain": 0.5,
        "time_failed": None,
        "time_skipped": float("nan"),
        "time_listed": {
            "params": [["1", "2", "3"]],
            "result": [1, 4, None],
            "stats": [{"ci_99": [0.5, 1.5], "repeat": 7}, None, None],
        },
        "time_single": {"result": 3, "stats": [{"ci_99": [2, 4], "q_25": 3, "q_75": 3}]},
    }
    path = make.asv(tmp_path, found, version=1)
    document = json.loads(path.read_text(encoding="utf-8"))
    del document["env_name"], document["result_columns"], document["env_vars"]
    path.write_text(json.dumps(document), encoding="utf-8")
    rows = {(r["operator"], r["shape"]): r for r in _rows(tmp_path)}
    assert len(rows) == 7
    assert rows["time_plain", ""]["value"] == 0.5 and rows["time_plain", ""]["unit"] == "seconds"
    assert rows["time_failed", ""]["status"] == "failed"
    assert rows["time_skipped", ""]["status"] == "skipped"
    assert [rows["time_listed", f"param1={i}"]["value"] for i in "123"] == [1.0, 4.0, None]
    assert rows["time_listed", "param1=1"]["n"] == 7
    assert (rows["time_single", ""]["value_low"], rows["time_single", ""]["value_high"]) == (2.0, 4.0)
    assert rows["time_plain", ""]["environment"] == "virtualenv-py3.12"


def test_null_for_all_combinations_is_a_failure_of_each(tmp_path: Path) -> None:
    make.asv(tmp_path, {"time_x": [None, PARAMS], "time_y": [None]})
    rows = _rows(tmp_path)
    assert len(rows) == 5 and {r["status"] for r in rows} == {"failed"}


def test_infinite_values_are_failures_and_infinite_intervals_unknown(tmp_path: Path) -> None:
    inf = float("inf")
    make.asv(
        tmp_path,
        {
            "track_x": [[inf], []],
            "track_y": [[-inf], []],
            "time_z": [[1.0], [], "v", None, None, [-inf], [inf]],
        },
    )
    rows = {r["operator"]: r for r in _rows(tmp_path)}
    assert (rows["track_x"]["status"], rows["track_x"]["value"]) == ("failed", None)
    assert "inf" in rows["track_x"]["reason"] and rows["track_y"]["status"] == "failed"
    assert (rows["time_z"]["value"], rows["time_z"]["value_low"], rows["time_z"]["value_high"]) == (1.0, None, None)


def test_the_literals_are_read_and_strings_that_look_like_them_kept() -> None:
    found = loads(b'{"a": NaN, "b": "NaN, Infinity", "c": [-Infinity, "\\"NaN"], "NaN": "\\u00e9"}')
    assert found["a"] != found["a"]
    assert found["b"] == "NaN, Infinity" and found["NaN"] == "é"
    assert found["c"] == [float("-inf"), '"NaN']


@pytest.mark.parametrize(
    "payload", [b"", b"{", b'{"a": 1', b'{"a": nan}', b"\xff\xfe", b"[" * 100_000, b'["\\ud800", NaN]']
)
def test_what_is_no_json_is_a_value_error(payload: bytes) -> None:
    with pytest.raises(ValueError):
        loads(payload)


def test_several_environments_and_machines_are_series_of_their_own(tmp_path: Path) -> None:
    for machine in ("box", "a b (c) [d]*", "ünïcode"):
        for environment in ("virtualenv-py3.11", "conda-py3.12-numpy1.26"):
            make.asv(tmp_path, {"time_x": [[1.0], []]}, machine=machine, env_name=environment)
    shown = open_store(tmp_path).snapshot
    assert shown.measurements.height == shown.latest.height == 6
    assert sorted(shown.machines["machine"]) == ["a b (c) [d]*", "box", "ünïcode"]
    again = open_store(tmp_path).snapshot  # from the cache
    assert again.measurements.sort("source").equals(shown.measurements.sort("source"))


def test_without_machine_json_the_files_own_name_is_shown(tmp_path: Path) -> None:
    make.asv(tmp_path, {"time_x": [[1.0], []]})
    (tmp_path / "box" / "machine.json").unlink()
    make.asv(tmp_path, {"time_x": [[1.0], []]}, machine="other", params={"os": "Linux"})
    (tmp_path / "other" / "machine.json").write_text("{", encoding="utf-8")
    shown = open_store(tmp_path).snapshot
    assert sorted(shown.measurements["machine"]) == ["box", "other"]
    assert shown.problems["file"].to_list() == ["other/machine.json"]


def test_a_file_of_another_machine_is_left_out_with_the_reason(tmp_path: Path) -> None:
    make.asv(tmp_path, {"time_x": [[1.0], []]}, params={"machine": "elsewhere"})
    shown = open_store(tmp_path).snapshot
    assert shown.measurements.is_empty()
    assert "elsewhere" in shown.problems["reason"][0] and "box" in shown.problems["reason"][0]


def test_a_renamed_benchmark_keeps_its_old_rows_under_the_old_name(tmp_path: Path) -> None:
    make.benchmarks(tmp_path, new__peakmem_x=("bytes", ["n"]))
    make.asv(tmp_path, {"old.peakmem_x": [[100.0], [["5"]]]}, commit="a" * 40)
    make.asv(tmp_path, {"new.peakmem_x": [[90.0], [["5"]]]}, commit="b" * 40)
    rows = {r["operator"]: r for r in _rows(tmp_path)}
    assert (rows["old.peakmem_x"]["unit"], rows["old.peakmem_x"]["shape"]) == ("bytes", "param1=5")
    assert (rows["new.peakmem_x"]["unit"], rows["new.peakmem_x"]["shape"]) == ("bytes", "n=5")


def test_ten_thousand_combinations(tmp_path: Path) -> None:
    params = [[str(i) for i in range(100)], [repr(f"k{i}") for i in range(100)]]
    make.asv(tmp_path, {"track_many": [[float(i) for i in range(10_000)], params]})
    rows = open_store(tmp_path).snapshot.measurements
    assert rows.height == rows["shape"].n_unique() == 10_000
    assert rows.filter(pl.col("shape") == "param1=73,param2=k21")["value"].to_list() == [7321.0]


def test_values_that_would_read_alike_keep_their_quotes(tmp_path: Path) -> None:
    make.asv(tmp_path, {"time_x": [[1.0, 2.0], [["1", "'1'"]]]})
    assert [r["shape"] for r in _rows(tmp_path)] == ["param1=1", "param1='1'"]


def test_more_results_than_combinations_and_fewer(tmp_path: Path) -> None:
    make.asv(tmp_path, {"time_more": [[1.0, 2.0, 3.0], [["1", "2"]]], "time_fewer": [[1.0], [["1", "2"]]]})
    assert [(r["operator"], r["shape"]) for r in _rows(tmp_path)] == [
        ("time_more", "param1=1"),
        ("time_more", "param1=2"),
        ("time_fewer", "param1=1"),
    ]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": 3}, "asv format 3"),
        ({"version": None}, "asv format None"),
        ({"results": [1]}, "must be objects"),
        ({"results": {"time_x": 3}}, "list of columns"),
        ({"results": {"time_x": [["text"], []]}}, "expected numbers, got str"),
        ({"results": {"time_x": [[{}], []]}}, "expected numbers"),
        ({"results": {"time_x": [[1.0], [3]]}}, "list of lists"),
        ({"results": {"time_x": [[1.0], 3]}}, "list of lists"),
        ({"results": {"time_x": [[10**400], []]}}, "too large"),
        ({"results": {"time_x": [None, [["1"] * 2000] * 3]}}, "combinations"),
        ({"result_columns": None}, "result_columns"),
        ({"params": None}, "must be objects"),
    ],
)
def test_a_file_that_is_wrong_is_named_with_the_reason(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    make.asv(tmp_path, {"time_ok": [[1.0], []]}, machine="good")
    make.asv(tmp_path, {}, **changes)
    shown = open_store(tmp_path).snapshot
    assert shown.measurements["operator"].to_list() == ["time_ok"]
    (problem,) = shown.problems.to_dicts()
    assert problem["file"].startswith("box/") and reason in problem["reason"]


def test_odd_fields_that_do_no_harm(tmp_path: Path) -> None:
    make.asv(
        tmp_path,
        {"time_x": [[1.0, 2.0], [["1", "2"]], None, "soon", None, [0.5], ["a", "b"], None, None, None, {}]},
        date="yesterday",
        requirements=None,
        env_vars=[],
        commit_hash=make.COMMIT,
    )
    rows = _rows(tmp_path)
    assert [r["value"] for r in rows] == [1.0, 2.0]
    assert {r["value_low"] for r in rows} == {r["value_high"] for r in rows} == {None}
    assert rows[0]["commit_time"] is None and rows[0]["started"] is None


def test_samples_where_asv_kept_them(tmp_path: Path) -> None:
    row = [[1.0, 2.0], [["1", "2"]], "v", 5, 1.0, None, None, None, None, None, None, [[0.9, 1.1], [1.9, None, 2.1]]]
    make.asv(tmp_path, {"time_x": row, "time_y": [[3.0], []]})
    rows = _rows(tmp_path)
    found = samples_of(tmp_path, rows[1])
    assert found.quantities == {"value": [1.9, 2.1]} and found.measurement["result"] == 2.0
    assert found.run["python"] == "3.12"
    assert samples_of(tmp_path, rows[2]).quantities == {}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("'a'", "a"),
        ('"it\'s"', "it's"),
        ("u'a'", "a"),
        ("<class 'list'>", "list"),
        ("1", "1"),
        ("''", "''"),
        ("' '", "' '"),
    ],
)
def test_readable_values(value: str, shown: str) -> None:
    assert readable(value) == shown


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("suite.time_x", "seconds"),
        ("suite.TimeSort.timeraw_x", "seconds"),
        ("suite.Class.TimeX", "seconds"),
        ("mem_x", "bytes"),
        ("a.peakmem_x", "bytes"),
        ("a.track_x", ""),
        ("timely.x", ""),
    ],
)
def test_units_by_name(name: str, unit: str) -> None:
    assert guessed_unit(name) == unit
