"""Questions to the frames, against the same sums done by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dashboard.store import Snapshot, open_store, queries
from dashboard.store.queries import best_by_size, compare, differing_fields, geomean, history, latest, speedup
from groundspeed.analysis import stats
from groundspeed.records import Environment
from tests.store import make

SMALL, LARGE = {"M": 128, "N": 1024}, {"M": 4096, "N": 1024}


def _only(median: float) -> dict[str, list[float]]:
    """Samples whose median is exactly so many ns, with an interval of ±1 %."""
    return {"device_cold": [median * (1 + (i - 7) / 700) for i in range(15)]}


def _measured(implementation: str, median: float, shape: dict[str, int], **changes: Any) -> Any:
    return make.measurement(implementation, samples=_only(median), shape=shape, **changes)


def _run(results: Path, number: int, times: dict[tuple[str, str], float], **changes: Any) -> None:
    """One run at day ``number``: (implementation, "small" | "large") -> ns; NaN is a failed one."""
    rows = []
    for (implementation, size), time in times.items():
        shape = SMALL if size == "small" else LARGE
        if math.isnan(time):
            rows.append(make.measurement(implementation, status="failed", failure="crash", samples={}, shape=shape))
        else:
            rows.append(_measured(implementation, time, shape))
    given = {
        "run_id": f"run{number}",
        "commit": f"{number}" * 40,
        "commit_time": f"2026-01-{number:02}T00:00:00+00:00",
        "started": f"2026-02-{number:02}T00:00:00+00:00",
    }
    make.record(results, *rows, **{**given, **changes})


@pytest.fixture
def shown(tmp_path: Path) -> Snapshot:
    _run(tmp_path, 1, {("torch_eager", "small"): 1000, ("torch_eager", "large"): 8000, ("triton_row", "small"): 500})
    _run(
        tmp_path,
        2,
        {
            ("torch_eager", "small"): 1100,
            ("torch_eager", "large"): 8800,
            ("triton_row", "small"): 550,
            ("triton_row", "large"): 2200,
            ("cuda_vec4", "small"): 2200,
            ("cuda_vec4", "large"): math.nan,
        },
    )
    return open_store(tmp_path).snapshot


def _by(frame: pl.DataFrame, *keys: str) -> dict[Any, dict[str, Any]]:
    return {tuple(row[key] for key in keys): row for row in frame.to_dicts()}


def test_latest_goes_by_the_commits_time_not_by_when_it_was_run(tmp_path: Path) -> None:
    _run(tmp_path, 5, {("torch_eager", "small"): 500})
    _run(tmp_path, 3, {("torch_eager", "small"): 300}, started="2026-12-01T00:00:00+00:00")
    shown = open_store(tmp_path).snapshot
    assert latest(shown.measurements)["run_id"].to_list() == ["run5"]
    assert shown.latest.equals(latest(shown.measurements))


def test_latest_among_runs_of_one_commit_is_the_last_started(tmp_path: Path) -> None:
    same = {"commit": "a" * 40, "commit_time": "2026-01-01T00:00:00+00:00"}
    _run(tmp_path, 2, {("torch_eager", "small"): 200}, **same)
    _run(tmp_path, 1, {("torch_eager", "small"): 100}, **same)
    assert latest(open_store(tmp_path).snapshot.measurements)["run_id"].to_list() == ["run2"]


def test_latest_keeps_a_failure_that_is_newer_than_a_value(tmp_path: Path) -> None:
    _run(tmp_path, 1, {("torch_eager", "small"): 100})
    _run(tmp_path, 2, {("torch_eager", "small"): math.nan})
    assert open_store(tmp_path).snapshot.latest["status"].to_list() == ["failed"]


def test_latest_of_many_rows_is_found_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (3, 1, 5, 2, 4):
        _run(tmp_path, number, {("torch_eager", "small"): 100.0, ("triton_row", "small"): 50.0})
    rows = open_store(tmp_path).snapshot.measurements
    whole = latest(rows)
    monkeypatch.setattr(queries, "_AT_ONCE", 3)
    assert latest(rows).equals(whole) and whole["run_id"].to_list() == ["run5", "run5"]


def test_without_commits_the_start_decides(tmp_path: Path) -> None:
    for number in (2, 1):
        _run(tmp_path, number, {("torch_eager", "small"): 100.0 * number}, commit="", commit_time="")
    assert open_store(tmp_path).snapshot.latest["run_id"].to_list() == ["run2"]


def test_speedup_pairs_inside_the_run(shown: Snapshot) -> None:
    rows = _by(speedup(shown.measurements, "torch_eager"), "run_id", "implementation", "facets")
    small, large = json.dumps(SMALL), json.dumps(LARGE)
    assert rows["run1", "triton_row", small]["speedup"] == pytest.approx(2.0)
    assert rows["run2", "triton_row", small]["speedup"] == pytest.approx(2.0)
    assert rows["run2", "triton_row", large]["speedup"] == pytest.approx(4.0)
    assert rows["run2", "cuda_vec4", small]["speedup"] == pytest.approx(0.5)
    assert rows["run1", "torch_eager", small]["speedup"] == pytest.approx(1.0)
    assert rows["run1", "triton_row", small]["baseline_value"] == pytest.approx(1e-6)
    assert rows["run1", "triton_row", small]["paired"] is True
    failed = rows["run2", "cuda_vec4", large]
    assert (failed["speedup"], failed["paired"]) == (None, None)
    assert len(rows) == shown.measurements.height


def test_speedup_falls_back_to_the_newest_baseline_and_says_so(tmp_path: Path) -> None:
    _run(tmp_path, 1, {("torch_eager", "small"): 1000})
    _run(tmp_path, 2, {("torch_eager", "small"): 1200})
    _run(tmp_path, 3, {("triton_row", "small"): 600})
    shown = open_store(tmp_path).snapshot
    row = _by(speedup(shown.latest, "torch_eager", reference=shown.measurements), "implementation")["triton_row",]
    assert (row["speedup"], row["paired"]) == (pytest.approx(2.0), False)


def test_speedup_of_a_metric_where_higher_is_better(shown: Snapshot) -> None:
    rows = _by(speedup(shown.latest, "torch_eager", "bytes_per_s"), "implementation", "facets")
    assert rows["triton_row", json.dumps(LARGE)]["speedup"] == pytest.approx(4.0)


def test_speedup_against_a_commit_and_a_machine(tmp_path: Path) -> None:
    _run(tmp_path, 1, {("torch_eager", "small"): 1000})
    _run(tmp_path, 2, {("torch_eager", "small"): 500})
    _run(tmp_path, 2, {("torch_eager", "small"): 4000}, machine="nvidia-a100")
    rows = open_store(tmp_path).snapshot.measurements
    found = _by(speedup(rows, "1" * 40, axis="commit"), "machine", "run_id")
    assert found["nvidia-h200", "run2"]["speedup"] == pytest.approx(2.0)
    assert found["nvidia-a100", "run2"]["speedup"] is None
    found = _by(speedup(rows, "nvidia-a100", axis="machine"), "machine", "run_id")
    assert found["nvidia-h200", "run2"]["speedup"] == pytest.approx(8.0)


def test_an_unknown_baseline_gives_no_speedup(shown: Snapshot) -> None:
    assert speedup(shown.latest, "no_such")["speedup"].null_count() == shown.latest.height


def test_geomean_counts_k_of_n(shown: Snapshot) -> None:
    means = _by(geomean(speedup(shown.latest, "torch_eager")), "implementation")
    assert means["triton_row",]["geomean"] == pytest.approx(stats.geometric_mean([2.0, 4.0]))
    assert (means["triton_row",]["k"], means["triton_row",]["n"]) == (2, 2)
    assert means["cuda_vec4",]["geomean"] == pytest.approx(0.5)
    assert (means["cuda_vec4",]["k"], means["cuda_vec4",]["n"]) == (1, 2)


def test_geomean_over_common_cases_alone(shown: Snapshot) -> None:
    means = _by(geomean(speedup(shown.latest, "torch_eager"), common=True), "implementation")
    assert {key: (row["geomean"], row["k"], row["n"]) for key, row in means.items()} == {
        ("cuda_vec4",): (pytest.approx(0.5), 1, 2),
        ("torch_eager",): (pytest.approx(1.0), 1, 2),
        ("triton_row",): (pytest.approx(2.0), 1, 2),
    }


def test_geomean_of_a_group_without_a_value_is_null(shown: Snapshot) -> None:
    rows = speedup(shown.latest, "torch_eager").filter(pl.col("facets") == json.dumps(LARGE))
    means = _by(geomean(rows), "implementation")
    assert (means["cuda_vec4",]["geomean"], means["cuda_vec4",]["k"], means["cuda_vec4",]["n"]) == (None, 0, 1)


def test_geomean_by_several_columns(shown: Snapshot) -> None:
    means = geomean(speedup(shown.latest, "torch_eager"), by=("implementation", "dtype"))
    assert means.columns == ["implementation", "dtype", "geomean", "k", "n"] and means.height == 3


def test_history_is_in_order_of_commits_and_marks_changes(tmp_path: Path) -> None:
    new = Environment("cuda", "NVIDIA H200", "3.12", "Linux", driver="590", torch="2.12")
    time = {("torch_eager", "small"): 1000.0}
    _run(tmp_path, 3, time, environment=new)
    _run(tmp_path, 1, time)
    _run(tmp_path, 2, time)
    make.record(
        tmp_path,
        _measured("torch_eager", 900.0, SMALL, case_digest="case2"),
        run_id="run4",
        commit="4" * 40,
        commit_time="2026-01-04T00:00:00+00:00",
        started="2026-01-04T00:00:00+00:00",
        environment=new,
    )
    shown = open_store(tmp_path).snapshot
    found = history(shown.measurements, shown.runs)
    assert found["run_id"].to_list() == ["run1", "run2", "run3", "run4"]
    assert found["ordinal"].to_list() == [0, 1, 2, 3]
    assert found["case_changed"].to_list() == [False, False, False, True]
    assert found["environment_changed"].to_list() == ["", "", "driver, torch", ""]
    assert history(shown.measurements)["environment_changed"].to_list() == [""] * 4


def test_history_gives_runs_of_one_commit_one_ordinal(tmp_path: Path) -> None:
    same = {"commit": "a" * 40, "commit_time": "2026-01-01T00:00:00+00:00"}
    for number in (1, 2):
        _run(tmp_path, number, {("torch_eager", "small"): 1000.0, ("triton_row", "small"): 500.0}, **same)
    _run(tmp_path, 3, {("torch_eager", "small"): 1000.0})
    assert history(open_store(tmp_path).snapshot.measurements)["ordinal"].to_list() == [0, 0, 0, 0, 1]


def test_differing_fields() -> None:
    assert differing_fields('{"a": 1, "b": 2}', '{"a": 1, "b": 3, "c": 4}') == ["b", "c"]
    assert differing_fields("", "") == [] and differing_fields("", '{"a": 1}') == ["a"]


def test_compare_two_commits_over_what_both_have(shown: Snapshot) -> None:
    rows = shown.measurements
    found = compare(rows.filter(pl.col("run_id") == "run1"), rows.filter(pl.col("run_id") == "run2"), axis="commit")
    assert (found.only_left, found.only_right) == (0, 2)
    assert found.frame.height == 3
    assert found.frame["ratio"].to_list() == pytest.approx([1 / 1.1] * 3)
    assert found.frame["significant"].to_list() == [True] * 3


def test_compare_two_implementations(shown: Snapshot) -> None:
    rows = shown.latest
    left = rows.filter(pl.col("implementation") == "torch_eager")
    right = rows.filter(pl.col("implementation") == "cuda_vec4")
    found = compare(left, right, axis="implementation")
    assert (found.frame["ratio"].to_list(), found.only_left, found.only_right) == ([pytest.approx(0.5)], 1, 0)
    assert "implementation" not in found.frame.columns


def test_compare_says_when_a_difference_is_within_the_intervals(tmp_path: Path) -> None:
    _run(tmp_path, 1, {("torch_eager", "small"): 1000})
    _run(tmp_path, 2, {("torch_eager", "small"): 1001})
    rows = open_store(tmp_path).snapshot.measurements
    one, other = (rows.filter(pl.col("run_id") == run) for run in ("run1", "run2"))
    assert compare(one, other, axis="commit").frame["significant"].to_list() == [False]
    assert compare(one, other, "bytes_per_s", axis="commit").frame["significant"].to_list() == [None]
    assert compare(one, other, "peak_memory", axis="commit").frame["ratio"].to_list() == [1.0]


def test_best_by_size(shown: Snapshot) -> None:
    rows = _by(best_by_size(shown.measurements, "softmax"), "shape")
    small, large = rows["M=128,N=1024",], rows["M=4096,N=1024",]
    assert (small["implementation"], small["second"]) == ("triton_row", "torch_eager")
    assert (small["margin"], small["tie"]) == (pytest.approx(2.0), False)
    assert (large["implementation"], large["value"], large["margin"]) == ("triton_row", pytest.approx(2.2e-6), 4.0)
    assert best_by_size(shown.measurements, "no_such").is_empty()


def test_best_by_size_of_a_single_implementation_and_of_a_tie(tmp_path: Path) -> None:
    _run(tmp_path, 1, {("torch_eager", "small"): 1000, ("triton_row", "large"): 1000, ("torch_eager", "large"): 1001})
    rows = _by(best_by_size(open_store(tmp_path).snapshot.measurements, "softmax"), "shape")
    alone = rows["M=128,N=1024",]
    assert (alone["implementation"], alone["second"], alone["margin"], alone["tie"]) == (
        "torch_eager",
        None,
        None,
        None,
    )
    assert rows["M=4096,N=1024",]["tie"] is True


def test_best_by_size_where_higher_is_better(shown: Snapshot) -> None:
    rows = _by(best_by_size(shown.measurements, "softmax", "bytes_per_s"), "shape")
    assert rows["M=4096,N=1024",]["implementation"] == "triton_row"
    assert rows["M=4096,N=1024",]["margin"] == pytest.approx(4.0)


def test_foreign_values_go_through_the_same_questions(tmp_path: Path) -> None:
    params = [["1", "2"]]
    make.asv(tmp_path, {"time_x": [[2.0, 4.0], params]}, commit="a" * 40, date=1_760_000_000_000)
    make.asv(tmp_path, {"time_x": [[1.0, 8.0], params]}, commit="b" * 40, date=1_770_000_000_000)
    shown = open_store(tmp_path).snapshot
    assert shown.latest["value"].to_list() == [1.0, 8.0]
    rows = speedup(shown.latest, "a" * 40, "value", axis="commit", reference=shown.measurements)
    assert rows["speedup"].to_list() == [2.0, 0.5]
    means = geomean(rows, by=("operator",))
    assert means.select("geomean", "k", "n").rows() == [(pytest.approx(1.0), 2, 2)]


def test_every_question_takes_an_empty_frame(tmp_path: Path) -> None:
    nothing = open_store(tmp_path).snapshot.measurements
    assert latest(nothing).is_empty() and history(nothing).is_empty()
    assert geomean(speedup(nothing, "torch_eager")).is_empty()
    assert compare(nothing, nothing, axis="commit").frame.is_empty()
    assert best_by_size(nothing, "softmax").is_empty()
