"""Which ceilings the roofline is drawn with."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import polars as pl

from dashboard.pages.roofline import newest_ceilings
from dashboard.view import View


def view_of(*runs: tuple[str, str, dict[str, Any] | None]) -> View:
    rows = [
        {
            "machine": "nvidia-h200",
            "run_id": run_id,
            "commit": "a" * 40,
            "started": started,
            "ceilings": "" if ceilings is None else json.dumps(ceilings),
        }
        for run_id, started, ceilings in runs
    ]
    frame = pl.DataFrame(rows)
    return cast(
        View, SimpleNamespace(machine="nvidia-h200", frames=SimpleNamespace(snapshot=SimpleNamespace(runs=frame)))
    )


def test_a_matmul_rate_is_found_in_the_sweep_that_measured_it():
    view = view_of(
        ("one", "2026-01-01T00:00", {"copy": 4.0, "read": 4.5, "write": 4.6, "matmul": {"float32": 50.0}}),
        ("one", "2026-01-01T00:05", {"copy": 4.1, "read": 4.4, "write": 4.7}),
    )
    found, source = newest_ceilings(view)
    assert found == {"copy": 4.1, "read": 4.4, "write": 4.7, "matmul": {"float32": 50.0}}
    assert source.count("run one") == 1


def test_each_dtype_has_its_newest_rate_and_every_run_used_is_named():
    view = view_of(
        ("old", "2026-01-01T00:00", {"copy": 1.0, "matmul": {"float32": 50.0, "float16": 700.0}}),
        ("new", "2026-02-01T00:00", {"copy": 2.0, "matmul": {"float16": 750.0}}),
        ("cpu", "2026-03-01T00:00", None),
    )
    found, source = newest_ceilings(view)
    assert found == {"copy": 2.0, "matmul": {"float16": 750.0, "float32": 50.0}}
    assert "run new" in source and "run old" in source and "cpu" not in source


def test_no_ceiling_is_made_up():
    assert newest_ceilings(view_of(("cpu", "2026-03-01T00:00", None))) == ({}, "")
