"""Years of results, on a scale of one to five hundred: what stays on disk, what is in memory, what is asked of them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from dashboard.store import jobs, open_store, tidy
from dashboard.store.queries import history
from tests.perf.generate_history import SERIES_OF_AN_OPERATOR, Years, write_run

MACHINES = ("nvidia-h200", "nvidia-h100")
COMMITS = 45


@pytest.fixture(scope="module")
def todo(tmp_path_factory: pytest.TempPathFactory) -> Years:
    made = Years(tmp_path_factory.mktemp("years") / "results", commits=COMMITS, machines=2, operators=2)
    for commit in range(COMMITS):
        for machine in MACHINES:
            write_run(made, machine, commit)
    return made


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes on the same scale."""
    monkeypatch.setattr(jobs, "MOST_ROWS", 500)
    monkeypatch.setattr(jobs, "SEALED_ROWS", 200)
    monkeypatch.setattr(tidy, "MOST_IN_MEMORY", 800)
    monkeypatch.setattr(tidy, "SMALL_ROWS", 100)
    monkeypatch.setattr(tidy, "LARGEST", 1_000)


@pytest.mark.usefixtures("small")
def test_a_history_is_whole_wherever_its_rows_lie(todo: Years) -> None:
    open_store(todo.out)
    snapshot = open_store(todo.out).snapshot  # from the cache
    assert snapshot.rows == todo.rows == COMMITS * 4 * SERIES_OF_AN_OPERATOR
    in_memory = sum(each.chunk.held.height for each in snapshot.shown if each.chunk.held is not None)
    assert in_memory <= 800
    assert snapshot.latest.height == 4 * SERIES_OF_AN_OPERATOR
    case = (pl.col("dtype") == "float32") & (pl.col("shape") == "M=256,N=1024")
    rows = snapshot.of("nvidia-h100", "groundspeed", "softmax").filter(case).collect()
    found = history(rows, snapshot.runs)
    assert found.height == 5 * COMMITS and found["ordinal"].max() == COMMITS - 1
    eager = found.filter(pl.col("implementation") == "torch_eager").sort("ordinal")
    assert eager["commit_time"].is_sorted() and eager["device_cold"].is_between(1e-6, 1e-4).all()
    assert eager["implementation_digest"].n_unique() == 2, "its files change every 40 commits"
    changed = history(snapshot.of("nvidia-h100", "groundspeed", "softmax").collect(), snapshot.runs)
    assert changed.filter("case_changed").select("dtype", "shape").n_unique() == 1
    assert set(changed["environment_changed"].unique()) == {""}


@pytest.mark.usefixtures("small")
def test_years_that_arrive_run_by_run_end_in_few_files(tmp_path: Path) -> None:
    """A nightly runner's store: 30 runs later it answers as if all had been read at once."""
    todo = Years(tmp_path / "results", commits=30, machines=1, operators=2)
    todo.out.mkdir()
    store = open_store(todo.out)
    most = 0
    for commit in range(30):
        write_run(todo, MACHINES[0], commit)
        assert store.refresh()
        most = max(most, len(store.snapshot.shown))
    assert store.snapshot.rows == store.snapshot.of().select(pl.len()).collect().item() == 30 * 2 * 50
    assert most <= 20
    fresh = open_store(todo.out).snapshot
    order = ["source", "implementation", "dtype", "shape"]
    assert fresh.of().sort(order).collect().equals(store.snapshot.of().sort(order).collect())
