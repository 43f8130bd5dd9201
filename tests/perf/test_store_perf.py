"""How long the store takes over many files: pytest-benchmark's figures, nothing here fails for being slow.

    GROUNDSPEED_PERF_SCALE=1 pytest tests/perf/test_store_perf.py --benchmark-only

Scale 1 is 2,000 files and 1.2 million rows, for which the dashboard is held to: ingest ≤ 6 s, refresh of a few files
≤ 150 ms, memory ≤ 600 MB, on two cores that have nothing else to do. The default scale, 0.02, proves that it works.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dashboard.store import Store, open_store
from dashboard.store.queries import best_by_size, compare, geomean, history, latest, speedup
from tests.perf.generate_results import Plan, generate, plan, write_run

pytest.importorskip("pytest_benchmark")
pytestmark = pytest.mark.slow

SCALE = float(os.environ.get("GROUNDSPEED_PERF_SCALE", "0.02"))
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def todo(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    made = plan(tmp_path_factory.mktemp("perf") / "results", round(2000 * SCALE), round(1_200_000 * SCALE))
    generate(made)
    return made


@pytest.fixture(scope="module")
def store(todo: Plan) -> Store:
    return open_store(todo.out)


@pytest.fixture(autouse=True)
def _size(request: pytest.FixtureRequest, todo: Plan) -> None:
    if "benchmark" in request.fixturenames:
        request.getfixturevalue("benchmark").extra_info.update(files=todo.files, rows=todo.rows)


def test_ingest(benchmark: Any, todo: Plan) -> None:
    """Every file, no cache."""

    def forget() -> None:
        shutil.rmtree(todo.out / ".cache", ignore_errors=True)

    store = benchmark.pedantic(open_store, (todo.out,), setup=forget, rounds=3)
    assert store.snapshot.measurements.height == todo.rows
    assert store.snapshot.runs.height == todo.files


def test_warm_start(benchmark: Any, todo: Plan, store: Store) -> None:
    """Every file unchanged: the cache is loaded."""
    again = benchmark.pedantic(open_store, (todo.out,), rounds=5)
    assert again.snapshot.version == store.snapshot.version


def test_refresh_without_news(benchmark: Any, store: Store) -> None:
    assert benchmark(store.refresh) is False


def test_refresh_of_a_few(benchmark: Any, todo: Plan, store: Store) -> None:
    """A run of ten operators has just ended."""
    numbers = itertools.count(todo.commits)

    def run() -> None:
        write_run(todo, next(numbers))

    assert benchmark.pedantic(store.refresh, setup=run, rounds=8) is True


def test_memory(todo: Plan, store: Store, benchmark: Any) -> None:
    """Peak resident memory, in MB, of a process that ingests everything, and of one that loads the cache."""
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from dashboard.store import open_store\n"
        "store = open_store(Path(sys.argv[1]))\n"
        "print(store.snapshot.runs.height, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )

    def peak() -> float:
        done = subprocess.run(
            [sys.executable, "-c", code, str(todo.out)], cwd=ROOT, check=True, capture_output=True, text=True
        )
        files, kib = map(int, done.stdout.split())
        assert files >= todo.files
        return kib * 1024 / 1e6

    benchmark.extra_info["warm_peak_mb"] = benchmark.pedantic(peak, rounds=1)
    shutil.rmtree(todo.out / ".cache")
    benchmark.extra_info["cold_peak_mb"] = peak()


def test_overview_of_latest(benchmark: Any, store: Store) -> None:
    """What an overview asks: today's speedups and their geomeans, from the snapshot's own latest."""
    shown = store.snapshot

    def ask() -> pl.DataFrame:
        return geomean(speedup(shown.latest.filter(pl.col("project") == "groundspeed"), "torch_eager"))

    assert benchmark(ask).height == 8


def test_latest_of_everything(benchmark: Any, store: Store) -> None:
    assert benchmark(latest, store.snapshot.measurements).height == store.snapshot.latest.height


def test_history_of_one_series(benchmark: Any, todo: Plan, store: Store) -> None:
    shown = store.snapshot
    one = (pl.col("operator") == "softmax") & (pl.col("implementation") == "triton_row")
    first = pl.col("shape") == shown.measurements.filter(one)["shape"][0]

    def ask() -> pl.DataFrame:
        return history(shown.measurements.filter(one, first), shown.runs)

    assert benchmark(ask)["ordinal"].max() >= todo.commits - 1


def test_compare_two_commits(benchmark: Any, store: Store) -> None:
    rows = store.snapshot.measurements
    ours = rows.filter(pl.col("project") == "groundspeed")
    first, second = ours.sort("commit_time")["commit"].unique(maintain_order=True)[:2]

    def ask() -> int:
        sides = (rows.filter(pl.col("commit") == commit) for commit in (first, second))
        return compare(*sides, axis="commit").frame.height

    assert benchmark(ask) > 0


def test_best_by_size(benchmark: Any, store: Store) -> None:
    assert benchmark(best_by_size, store.snapshot.latest, "relu").height > 0
