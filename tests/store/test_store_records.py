"""Rows made of our records: every value against records.read_record and analysis.stats."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest

from dashboard.store import open_store, samples_of
from groundspeed.analysis import stats
from groundspeed.analysis.roofline import ceiling
from groundspeed.cli import main
from groundspeed.errors import UserError
from groundspeed.records import RecordError, read_record
from tests.store import make


def _row(results: Path, **where: str) -> dict[str, object]:
    rows = open_store(results).snapshot.measurements
    for name, value in where.items():
        rows = rows.filter(pl.col(name) == value)
    assert rows.height == 1
    return rows.to_dicts()[0]


def test_values_are_those_of_the_record_in_base_units(tmp_path: Path) -> None:
    path = make.record(tmp_path, make.measurement("triton_row", tuned="BLOCK=1024"))
    stored = read_record(path)
    measured = stored.measurements[0]
    row = _row(tmp_path)
    for quantity in ("device_cold", "device_hot", "call", "host"):
        assert row[quantity] == pytest.approx(stats.median(measured.samples[quantity]) * 1e-9, rel=1e-12)
    for quantity in ("device_cold", "device_hot", "call"):
        low, high = stats.median_interval(measured.samples[quantity])
        assert row[f"{quantity}_low"] == pytest.approx(low * 1e-9, rel=1e-6)
        assert row[f"{quantity}_high"] == pytest.approx(high * 1e-9, rel=1e-6)
        assert row[f"{quantity}_p99"] == pytest.approx(
            stats.quantile(measured.samples[quantity], 0.99) * 1e-9, rel=1e-6
        )
    assert row["device_cold_p95"] == pytest.approx(
        stats.quantile(measured.samples["device_cold"], 0.95) * 1e-9, rel=1e-6
    )
    cold = stats.median(measured.samples["device_cold"]) * 1e-9
    limit = ceiling(stored.header.ceilings, "memory", "float32", 8_000_000, (16_777_216, 16_777_216))
    assert limit is not None
    expected = {
        "n": 30,
        "bytes": 33_554_432,
        "flops": 8_000_000,
        "items": 4096,
        "bytes_per_s": pytest.approx(33_554_432 / cold),
        "flops_per_s": pytest.approx(8_000_000 / cold),
        "items_per_s": pytest.approx(4096 / cold),
        "roofline": pytest.approx(limit.least_ns * 1e-9 / cold),
        "first_call": pytest.approx(2.001),
        "peak_memory": 33_554_432,
        "energy": pytest.approx(4e-3),
        "max_abs_error": 1e-6,
        "norm_error": 3e-7,
        "value": None,
    }
    assert {name: row[name] for name in expected} == expected


def test_labels(tmp_path: Path) -> None:
    make.record(tmp_path, make.measurement("triton_row", tuned="BLOCK=1024", unstable="wide"))
    row = _row(tmp_path)
    expected = {
        "machine": "nvidia-h200",
        "run_id": "20260101T000000Z-aaaaaa",
        "source": "nvidia-h200/records/20260101T000000Z-aaaaaa/softmax.jsonl.gz",
        "project": "groundspeed",
        "environment": "",
        "commit": make.COMMIT,
        "operator": "softmax",
        "implementation": "triton_row",
        "backend": "triton",
        "dtype": "float32",
        "shape": "M=4096,N=1024",
        "case": "float32 M=4096,N=1024",
        "facets": '{"M": 4096, "N": 1024}',
        "status": "ok",
        "failure": "",
        "reason": "",
        "unstable": "wide",
        "timer": "cupti",
        "case_digest": "case1",
        "implementation_digest": "impl1",
        "tuned": "BLOCK=1024",
        "unit": "",
        "direction": "",
    }
    assert {name: row[name] for name in expected} == expected
    assert str(row["started"]).startswith("2026-01-01 01:00:00")
    assert str(row["commit_time"]).startswith("2026-01-01 00:00:00")


def test_skipped_failed_and_untimed_rows_are_kept_without_values(tmp_path: Path) -> None:
    make.record(
        tmp_path,
        make.measurement("cupy_raw", status="skipped", reason="no bfloat16", samples={}, accuracy=None),
        make.measurement("cuda_vec4", status="failed", failure="crash", reason="signal 11", samples={}),
        make.measurement("torch_eager"),
    )
    rows = {row["implementation"]: row for row in open_store(tmp_path).snapshot.measurements.to_dicts()}
    assert (rows["cupy_raw"]["status"], rows["cupy_raw"]["reason"]) == ("skipped", "no bfloat16")
    assert (rows["cuda_vec4"]["failure"], rows["cuda_vec4"]["reason"]) == ("crash", "signal 11")
    for name in ("device_cold", "device_cold_low", "bytes_per_s", "roofline", "call_p99"):
        assert rows["cupy_raw"][name] is None
        assert rows["torch_eager"][name] is not None
    assert rows["cupy_raw"]["n"] == 0


@pytest.mark.parametrize("beside", [True, False])
def test_a_record_without_measurements_is_a_run_without_rows(tmp_path: Path, beside: bool) -> None:
    """Earlier versions wrote one when nothing was selected."""
    make.record(tmp_path, operator="relu")
    if beside:
        make.record(tmp_path, make.measurement("triton_row"))
    snapshot = open_store(tmp_path).snapshot
    assert snapshot.measurements.height == beside
    assert snapshot.runs.sort("operator")["rows"].to_list() == [0, 1][: 1 + beside]
    assert snapshot.problems.is_empty()


@pytest.mark.parametrize("command", ["history", "best", "export", "store verify", "store compact"])
@pytest.mark.parametrize("beside", [True, False])
def test_no_reader_falls_over_a_record_without_measurements(tmp_path: Path, command: str, beside: bool) -> None:
    results = tmp_path / "results"
    make.record(results, operator="relu")
    if beside:
        make.record(results, make.measurement("triton_row"))
    page = [str(tmp_path / "page.html")] if command == "export" else []
    try:
        assert main([*command.split(), *page, "--results", str(results)]) in (0, 2)
    except UserError as error:
        assert not beside, error


def test_too_few_samples_have_a_median_but_no_interval(tmp_path: Path) -> None:
    make.record(tmp_path, make.measurement(samples={"device_cold": [30.0, 10.0, 20.0]}))
    row = _row(tmp_path)
    assert row["device_cold"] == pytest.approx(20e-9)
    assert (row["device_cold_low"], row["device_cold_high"]) == (None, None)
    assert row["device_hot"] is None


def test_without_ceilings_there_is_no_roofline(tmp_path: Path) -> None:
    make.record(tmp_path, make.measurement(), ceilings=None)
    assert _row(tmp_path)["roofline"] is None


def test_runs_hold_the_header(tmp_path: Path) -> None:
    make.record(tmp_path, make.measurement(), dirty=True, ladders={"l": ["torch_eager", "cuda_vec4"]}, tier="core")
    (run,) = open_store(tmp_path).snapshot.runs.to_dicts()
    assert (run["dirty"], run["tier"], run["bound"], run["rows"]) == (True, "core", "memory", 1)
    assert run["command"] == "groundspeed run softmax"
    assert run["seconds"] == 2.5
    assert '"driver": "580"' in run["details"]
    assert '"copy": 4300000000000.0' in run["ceilings"]
    assert run["ladders"] == '{"l": ["torch_eager", "cuda_vec4"]}'


def test_samples_of_a_row_come_from_its_file(tmp_path: Path) -> None:
    make.record(tmp_path, make.measurement("torch_eager"), make.measurement("triton_row", time=5000.0))
    found = samples_of(tmp_path, _row(tmp_path, implementation="triton_row"))
    expected = make.measurement("triton_row", time=5000.0).samples["device_cold"]
    assert found.quantities["device_cold"] == pytest.approx([value * 1e-9 for value in expected])
    assert found.run["command"] == "groundspeed run softmax"
    assert found.measurement["implementation"] == "triton_row" and "samples" not in found.measurement


@pytest.mark.parametrize("source", ["../secret.jsonl.gz", "/etc/passwd", "box/../../x.json"])
def test_samples_are_never_read_outside_the_results_folder(tmp_path: Path, source: str) -> None:
    row = {"source": source, "project": "asv", "operator": "", "implementation": "", "case": "", "facets": ""}
    with pytest.raises(UserError, match="outside the results folder"):
        samples_of(tmp_path, row)


def test_samples_of_a_file_that_is_gone_say_which(tmp_path: Path) -> None:
    path = make.record(tmp_path, make.measurement())
    row = _row(tmp_path)
    path.unlink()
    with pytest.raises(UserError, match=r"softmax\.jsonl\.gz"):
        samples_of(tmp_path, row)


def _damage(path: Path, change: str) -> None:
    payload = path.read_bytes()
    top, line, end = gzip.decompress(payload).splitlines()
    raw = {"cut": payload[:-20], "not gzip": b"hello", "empty": b"", "empty gzip": gzip.compress(b"")}
    lines = {
        "no footer": [top, line],
        "lost line": [top, end],
        "cut inside": [top, line, end[:-3]],
        "future": [b'{"schema":99}', line, end],
        "text for a number": [top, line.replace(b'"flops":8', b'"flops":"8"'), end],
        "deep": [top, line.replace(b'"timer"', b'"notes":' + b"[" * 100_000 + b',"timer"'), end],
        "list": [b"[]", b"[]", b"[]"],
    }
    path.write_bytes(raw[change] if change in raw else gzip.compress(b"\n".join([*lines[change], b""])))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("cut", "cut short"),
        ("not gzip", "gzip"),
        ("empty", "cut short"),
        ("empty gzip", "header and footer"),
        ("no footer", "not a whole record"),
        ("lost line", "holds 0 measurements, its footer says 1"),
        ("cut inside", "not a whole record"),
        ("future", "schema 99"),
        ("deep", "not a whole record"),
        ("text for a number", "not a whole record"),
        ("list", "not a whole record"),
    ],
)
def test_a_damaged_record_is_named_and_the_rest_is_shown(tmp_path: Path, change: str, reason: str) -> None:
    damaged = make.record(tmp_path, make.measurement())
    _damage(damaged, change)
    with pytest.raises(RecordError):
        read_record(damaged)
    make.record(tmp_path, make.measurement(), operator="relu")
    shown = open_store(tmp_path).snapshot
    assert shown.measurements["operator"].to_list() == ["relu"]
    (problem,) = shown.problems.to_dicts()
    assert problem["file"].endswith("softmax.jsonl.gz") and reason in problem["reason"]
