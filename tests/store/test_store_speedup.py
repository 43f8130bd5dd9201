"""The speedups of the frames against ``groundspeed.analysis.speedup``, which the README and the table show."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from dashboard.frames import Frames
from dashboard.store import open_store
from dashboard.store.queries import compare, speedup
from groundspeed.analysis.speedup import speedup_table
from groundspeed.records import read_record
from tests.store import make

RESULTS = Path(__file__).resolve().parents[2] / "results"
MACHINE = "nvidia-h200"


def _noisy(implementation: str, median: float, seed: int, count: int = 30, **changes: object) -> object:
    """Rounds that scatter so widely that the ratio of medians is another number than the median of ratios."""
    wide = [median * (sample / 10_000) ** 20 for sample in make.samples(10_000, count, seed)]
    return make.measurement(implementation, samples={"device_cold": wide}, **changes)


def test_every_stored_speedup_is_that_of_the_speedup_table() -> None:
    frames = Frames(open_store(RESULTS).snapshot)
    shown = frames.speedups(MACHINE, "groundspeed", "device_cold", "torch_eager")
    expected = {}
    for source in shown.filter(pl.col("paired"))["source"].cast(pl.String).unique():
        for row in speedup_table(read_record(RESULTS / source)):
            if row.speedup is not None:
                expected[source, row.implementation, row.dtype, row.shape_label] = row.speedup.value
    keys = ("source", "implementation", "dtype", "shape")
    found = {tuple(row[key] for key in keys): row["speedup"] for row in shown.to_dicts() if row["paired"]}
    assert found and found == {key: pytest.approx(expected[key], rel=1e-12) for key in found}


def test_a_baseline_of_another_case_is_none(tmp_path: Path) -> None:
    """One run lacks its baseline, and a later one of the baseline computed something else."""
    make.record(
        tmp_path,
        _noisy("triton_row", 3000, 2, case_digest="a" * 16),
        make.measurement("torch_eager", status="failed", failure="incorrect", samples={}, case_digest="a" * 16),
        run_id="20260101T000000Z-aaaaaaaa-0001",
    )
    for number, digest in ((2, "b"), (3, "a")):
        one = _noisy("torch_eager", 9000, 1, case_digest=digest * 16)
        make.record(
            tmp_path,
            one,
            run_id=f"20260102T00000{number}Z-aaaaaaaa-000{number}",
            started=f"2026-01-02T00:00:0{number}+00:00",
        )
        found = speedup(open_store(tmp_path).snapshot.latest, "torch_eager").filter(
            pl.col("implementation") == "triton_row"
        )
        assert found["paired"].to_list() == [None if digest == "b" else False]


def test_rounds_are_paired_where_both_have_as_many(tmp_path: Path) -> None:
    path = make.record(
        tmp_path,
        _noisy("torch_eager", 9000, 1),
        _noisy("triton_row", 3000, 2),
        _noisy("cuda_vec4", 3000, 3, 29),
        make.measurement("cupy_raw", status="failed", failure="crash", samples={}),
    )
    rows = {
        row["implementation"]: row for row in speedup(open_store(tmp_path).snapshot.latest, "torch_eager").to_dicts()
    }
    expected = {row.implementation: row for row in speedup_table(read_record(path))}
    for name in ("torch_eager", "triton_row", "cuda_vec4"):
        assert rows[name]["speedup"] == pytest.approx(expected[name].speedup.value, rel=1e-12)
    assert rows["triton_row"]["speedup"] == rows["triton_row"]["speedup_eager"]
    medians = rows["torch_eager"]["device_cold"] / rows["triton_row"]["device_cold"]
    assert abs(rows["triton_row"]["speedup"] / medians - 1) > 1e-3
    assert (rows["cuda_vec4"]["speedup_eager"], rows["cupy_raw"]["speedup"]) == (None, None)


def test_other_metrics_and_baselines_divide_medians(tmp_path: Path) -> None:
    make.record(tmp_path, _noisy("torch_eager", 9000, 1), _noisy("triton_row", 3000, 2))
    latest = open_store(tmp_path).snapshot.latest
    medians = dict(latest.select(pl.col("implementation").cast(pl.String), "device_cold").iter_rows())
    rows = {row["implementation"]: row for row in speedup(latest, "triton_row").to_dicts()}
    assert rows["torch_eager"]["speedup"] == pytest.approx(medians["triton_row"] / medians["torch_eager"])
    rows = {row["implementation"]: row for row in speedup(latest, "torch_eager", "bytes_per_s").to_dicts()}
    assert rows["triton_row"]["speedup"] == pytest.approx(medians["torch_eager"] / medians["triton_row"])


def test_a_comparison_with_the_baseline_pairs_rounds_of_one_record(tmp_path: Path) -> None:
    make.record(tmp_path, _noisy("torch_eager", 9000, 1), _noisy("triton_row", 3000, 2))
    rows = open_store(tmp_path).snapshot.latest
    eager, triton = (rows.filter(pl.col("implementation") == name) for name in ("torch_eager", "triton_row"))
    stored = triton["speedup_eager"].item()
    assert compare(eager, triton, axis="implementation").frame["ratio"].to_list() == [stored]
    assert compare(triton, eager, axis="implementation").frame["ratio"].to_list() == [1 / stored]
    make.record(tmp_path, _noisy("triton_row", 3000, 4), run_id="20260202T000000Z-b", started="2026-02-02T00:00:00Z")
    rows = open_store(tmp_path).snapshot.latest
    eager, triton = (rows.filter(pl.col("implementation") == name) for name in ("torch_eager", "triton_row"))
    medians = eager["device_cold"].item() / triton["device_cold"].item()
    assert compare(eager, triton, axis="implementation").frame["ratio"].to_list() == [pytest.approx(medians)]
