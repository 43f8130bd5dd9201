"""What pages derive from a snapshot."""

from __future__ import annotations

import pytest

pytest.importorskip("polars")

from dashboard.frames import Frames
from dashboard.store import open_store
from tests.cli.records_for_tests import ok, record, store


def test_a_speedup_is_over_the_baseline_of_its_own_run_though_a_newer_one_is_there(tmp_path):
    store(tmp_path, record(ok("torch_eager", 100), ok("torch_add", 50), run_id="20260101T000000Z-a"))
    store(tmp_path, record(ok("torch_eager", 1000), run_id="20260102T000000Z-b"))
    frames = Frames(open_store(tmp_path).snapshot)
    rows = frames.speedups("nvidia-test", "groundspeed", "device_cold", "torch_eager").to_dicts()
    found = {row["implementation"]: row for row in rows}
    assert found["torch_add"]["speedup"] == pytest.approx(2.0, rel=0.05) and found["torch_add"]["paired"]
    assert found["torch_eager"]["speedup"] == pytest.approx(1.0)
