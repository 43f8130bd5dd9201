"""Comparisons of stored results: verdicts, and what is said of their certainty."""

from __future__ import annotations

import json

import numpy as np
import pytest

from groundspeed.analysis.compare import compare
from groundspeed.analysis.foreign import NotResults, read_foreign
from groundspeed.analysis.stored import SeriesId, Stored, StoredRun, from_record, timed
from groundspeed.records import Accuracy, Environment, Footer, Header, Measurement, Record

SERIES = SeriesId("softmax", "triton_row", "float16", "M=8", "device_cold")


def run(name="r", machine="m", computation="d", **environment):
    return StoredRun(name, "c" * 40, machine, tuple(sorted(environment.items())), computation)


def runs(scale, count, seed, spread=0.001, **more):
    """So many runs whose medians scatter by ``spread``, 30 samples each."""
    random = np.random.default_rng(seed)
    return [run_at(scale * random.normal(1, spread), random, f"r{i}", **more) for i in range(count)]


def run_at(middle, random, name="r", **more):
    return timed(SERIES, run(name, **more), "ns", tuple(middle * random.normal(1, 0.005, 30)), "cupti")


def only(base, head, **more):
    (comparison,) = compare(base, head, **more)
    return comparison


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(1.0, "unchanged"), (1.03, "unchanged"), (1.10, "regressed"), (1 / 1.10, "improved")]
)
@pytest.mark.parametrize("count", [1, 4])
def test_verdicts_at_the_default_threshold(ratio, verdict, count):
    comparison = only(runs(100, count, 1), runs(100 * ratio, count, 2))
    assert comparison.verdict == verdict
    assert comparison.certainty == ("high" if count == 4 else "medium")
    assert comparison.ratio == pytest.approx(ratio, rel=0.01)
    assert comparison.low <= comparison.ratio <= comparison.high


def test_runs_that_scatter_are_ambiguous_not_regressed():
    random = np.random.default_rng(3)
    base = [run_at(middle, random) for middle in (90, 100, 116, 98)]
    head = [run_at(middle, random) for middle in (95, 108, 124, 107)]
    comparison = only(base, head)
    assert comparison.ratio > 1.05 and comparison.verdict == "ambiguous"
    assert "the interval holds 1" in comparison.reasons


def test_the_spread_between_runs_is_seen_only_with_enough_of_them():
    few = only(runs(100, 1, 5, spread=0.05), runs(100, 1, 6, spread=0.05))
    many = only(runs(100, 5, 5, spread=0.05), runs(100, 5, 6, spread=0.05))
    assert many.high - many.low > 3 * (few.high - few.low)
    assert "how far runs scatter is unknown" in few.reasons[0] and not many.reasons


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"driver": "590"}, "driver differs: 580 and 590"), ({"machine": "other"}, "machines differ: m, other")],
)
def test_a_different_environment_lowers_the_certainty(change, reason):
    base = runs(100, 4, 1, driver="580")
    comparison = only(base, runs(110, 4, 2, **{"driver": "580"} | change))
    assert comparison.certainty == "low" and reason in comparison.reasons
    assert comparison.verdict == "regressed"


def test_different_work_is_not_compared():
    other = runs(50, 4, 2, computation="e")
    comparison = only(runs(100, 4, 1), other)
    assert comparison.verdict == "incomparable" and comparison.ratio is None
    assert "computation" in comparison.reasons[0]


def test_an_unsettled_run_lowers_the_certainty():
    base = runs(100, 1, 1)
    unsettled = timed(SERIES, run(), "ns", base[0].samples, "cupti", unstable="budget spent")
    assert only(base, [unsettled]).certainty == "low"


def test_single_values_never_convict():
    base, head = (Stored(SERIES, run(), "seconds", value=value) for value in (1.0, 2.0))
    comparison = only([base], [head])
    assert comparison.verdict == "ambiguous" and comparison.certainty == "low"


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        (None, "ok", "new"),
        ("ok", None, "removed"),
        ("ok", "failed", "broken"),
        ("ok", "skipped", "removed"),
        ("failed", "ok", "fixed"),
        ("skipped", "ok", "new"),
        ("failed", "failed", "incomparable"),
    ],
)
def test_statuses(base, head, verdict):
    def side(status):
        if status is None:
            return []
        return runs(100, 1, 1) if status == "ok" else [Stored(SERIES, run(), "ns", status, "because")]

    assert only(side(base), side(head)).verdict == verdict


def test_a_record_gives_time_memory_and_error():
    entry = Measurement(
        implementation="triton_row",
        dtype="float16",
        shape={"M": 8},
        status="ok",
        case_digest="d",
        samples={"device_cold": [1.0] * 9, "host": [2.0] * 9},
        peak_memory_bytes=90,
        prepared_memory_bytes=10,
        accuracy=Accuracy(max_abs=1, max_rel=1, norm=0.5, tolerance_used=0.1),
    )
    failed = Measurement(implementation="cuda_x", dtype="float16", shape={"M": 8}, status="failed", failure="oom")
    environment = Environment(device="cuda", device_name="H200", python="3.12", os="linux", driver="580")
    header = Header(run_id="r", operator="softmax", machine="m", started="", environment=environment, commit="c")
    stored = {each.series.metric: each for each in from_record(Record(header, (entry,), Footer(1)))}
    assert set(stored) == {"device_cold", "peak_memory", "error"}
    assert stored["peak_memory"].value == 100 and stored["error"].value == 0.5
    assert ("driver", "580") in stored["error"].run.environment
    (only_failed,) = from_record(Record(header, (failed,), Footer(1)))
    assert only_failed.status == "failed" and only_failed.value is None


def test_exact_metrics_are_judged_without_samples():
    def memory(size):
        series = SeriesId("softmax", "triton_row", "float16", "M=8", "peak_memory")
        return [Stored(series, run(), "bytes", value=size, low=size, high=size)]

    assert only(memory(100.0), memory(110.0)).verdict == "regressed"
    assert only(memory(100.0), memory(104.0)).verdict == "unchanged"
    assert only(memory(0.0), memory(4.0)).verdict == "ambiguous"
    assert only(memory(0.0), memory(0.0)).verdict == "unchanged"


ASV_2 = {
    "commit_hash": "a" * 40,
    "version": 2,
    "params": {"machine": "box", "cpu": "x"},
    "requirements": {"numpy": "2"},
    "result_columns": ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b"],
    "results": {
        "s.time_f": [
            [1.0, None, float("nan")],
            [["'a'", "'b'", "'c'"]],
            "v1",
            0,
            0,
            [0.9, None, None],
            [1.1, None, None],
        ],
        "s.mem_g": [[100], [], "v2"],
    },
}


def test_asv_version_2(tmp_path):
    (tmp_path / "benchmarks.json").write_text(json.dumps({"s.time_f": {"param_names": ["which"]}, "version": 2}))
    (tmp_path / "box").mkdir()
    path = tmp_path / "box/aaaaaaaa-env.json"
    path.write_text(json.dumps(ASV_2))
    one, failed, skipped, memory = read_foreign(path)
    assert (one.series.shape, one.value, one.low, one.high) == ("which=a", 1.0, 0.9, 1.1)
    assert one.run.machine == "box" and one.run.computation == "v1" and ("numpy", "2") in one.run.environment
    assert (failed.status, skipped.status) == ("failed", "skipped")
    assert memory.unit == "bytes" and memory.value == 100


def test_asv_version_1(tmp_path):
    document = {
        "commit_hash": "b" * 40,
        "version": 1,
        "params": {"machine": "box"},
        "benchmark_version": {"s.time_f": "v"},
        "results": {
            "s.time_f": {"result": [2.0], "params": [], "stats": [{"ci_99": [1.5, 2.5]}], "samples": [[2.0] * 9]},
            "s.track_h": 3,
        },
    }
    path = tmp_path / "b.json"
    path.write_text(json.dumps(document))
    timed_one, tracked = read_foreign(path)
    assert timed_one.samples == (2.0,) * 9 and timed_one.run.computation == "v"
    assert tracked.value == 3.0


def test_pytest_benchmark(tmp_path):
    document = {
        "machine_info": {"node": "host", "python_version": "3.12", "cpu": {"brand_raw": "EPYC"}},
        "commit_info": {"id": "c" * 40},
        "benchmarks": [
            {"name": "test_a[1]", "fullname": "t.py::test_a[1]", "params": {"n": 1}, "stats": {"median": 2.0}},
            {"name": "test_b", "stats": {"median": 1.0, "data": [1.0] * 9}},
        ],
        "datetime": "2026-01-01T00:00:00",
    }
    path = tmp_path / "p.json"
    path.write_text(json.dumps(document))
    a, b = read_foreign(path)
    assert (a.series.operator, a.series.shape, a.value, a.low) == ("t.py::test_a", "n=1", 2.0, None)
    assert b.low == b.high == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "{}",
        '{"commit_hash": 3, "results": {"a": [[]]}}',
        '{"machine_info": {}, "benchmarks": [3]}',
        "[" * 9999,
    ],
)
def test_what_is_no_result_file_is_named(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(NotResults, match=r"x\.json"):
        read_foreign(path)
