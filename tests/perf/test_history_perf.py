"""How the store does with the results of years: pytest-benchmark's figures, nothing here fails for being slow.

    GROUNDSPEED_PERF_YEARS=1 pytest tests/perf/test_history_perf.py --benchmark-only

Scale 1 is 10,000 commits on 5 GPUs of 600 series each, 600,000 record files with 30 million rows: it opens in ≤ 5 s and
answers a question for a history in ≤ 100 ms, within 2 GB of memory, on two cores that have nothing else to do. Writing
it takes a quarter of an hour and 5 GB, reading it the first time as long; GROUNDSPEED_PERF_RESULTS names a folder in
which tests/perf/generate_history.py has written it before. The default scale, 0.005, proves that it works.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dashboard.app import draw_view
from dashboard.frames import Library
from dashboard.state import State
from dashboard.store import Store, open_store
from dashboard.store.queries import history
from tests.perf.generate_history import MACHINES, SERIES_OF_AN_OPERATOR, Years, generate, write_run

pytest.importorskip("pytest_benchmark")
pytestmark = pytest.mark.slow

SCALE = float(os.environ.get("GROUNDSPEED_PERF_YEARS", "0.005"))
GIVEN = os.environ.get("GROUNDSPEED_PERF_RESULTS", "")
ROOT = Path(__file__).resolve().parents[2]
OPEN = """
import json, resource, sys, time
from pathlib import Path
from dashboard.store import open_store
began = time.perf_counter()
rows = open_store(Path(sys.argv[1])).snapshot.rows
seconds = time.perf_counter() - began
own, workers = (resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(json.dumps({"rows": rows, "seconds": seconds, "peak_mib": own, "largest_worker_mib": workers}))
"""


@pytest.fixture(scope="module")
def todo(tmp_path_factory: pytest.TempPathFactory) -> Years:
    if GIVEN:
        return Years(Path(GIVEN))
    made = Years(tmp_path_factory.mktemp("years") / "results", commits=round(Years.commits * SCALE))
    generate(made)
    return made


def _opened(results: Path) -> dict[str, float]:
    """What opening the folder took a process of its own."""
    command = [sys.executable, "-c", OPEN, str(results)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return dict(pl.read_json(done.stdout.encode()).row(0, named=True))


@pytest.fixture(scope="module")
def first(todo: Years) -> dict[str, float]:
    """The first start, which reads every file (where no cache was left by another)."""
    return _opened(todo.out)


@pytest.fixture(scope="module")
def store(todo: Years, first: dict[str, float]) -> Store:
    return open_store(todo.out)


@pytest.fixture(autouse=True)
def _size(benchmark: Any, todo: Years) -> None:
    benchmark.extra_info.update(files=todo.files, rows=todo.rows)


def test_open(benchmark: Any, todo: Years, first: dict[str, float]) -> None:
    """From the cache, in a process of its own: the figure is ``seconds``, for a process also imports."""
    runs: list[dict[str, float]] = []
    benchmark.pedantic(lambda: runs.append(_opened(todo.out)), rounds=5)
    benchmark.extra_info.update(first=first, seconds=sorted(run["seconds"] for run in runs), last=runs[-1])
    assert runs[-1]["rows"] >= todo.rows


def test_refresh_without_news(benchmark: Any, store: Store) -> None:
    assert benchmark.pedantic(store.refresh, rounds=5) is False


@pytest.mark.parametrize("series", [1, 5])
def test_history(benchmark: Any, todo: Years, store: Store, series: int) -> None:
    """All commits of one series, and of the five implementations of one case, each time of another operator."""
    snapshot = store.snapshot
    machine = pl.col("machine") == MACHINES[0]
    operators = itertools.cycle(snapshot.latest.filter(machine)["operator"].unique().to_list())
    case = (pl.col("dtype") == "float32") & (pl.col("shape") == "M=512,N=1024")
    wanted = case & (pl.col("implementation") == "triton_row") if series == 1 else case

    def ask() -> pl.DataFrame:
        rows = snapshot.of(MACHINES[0], "groundspeed", next(operators)).filter(wanted).collect()
        return history(rows, snapshot.runs.filter(machine))

    answer = benchmark.pedantic(ask, rounds=24, warmup_rounds=1)
    assert answer.height >= series * todo.commits and answer["ordinal"].max() >= todo.commits - 1


def test_page(benchmark: Any, store: Store) -> None:
    """The History page of an operator, drawn: the newest 400 commits. The first round makes what all pages share."""
    library = Library(store)
    state = State("history", {"machine": MACHINES[0], "operator": "softmax"})
    benchmark.pedantic(draw_view, (library, state, ROOT), rounds=8, warmup_rounds=2)


def test_a_run_arrives(benchmark: Any, todo: Years, store: Store) -> None:
    """A commit's twelve files on one GPU."""
    before, runs = store.snapshot.rows, store.snapshot.runs
    # A folder that was measured before has more commits than were generated.
    numbers = itertools.count(runs.filter(pl.col("machine") == MACHINES[0])["commit"].n_unique() + 1000)

    def run() -> None:
        write_run(todo, MACHINES[0], next(numbers))

    assert benchmark.pedantic(store.refresh, setup=run, rounds=5) is True
    assert store.snapshot.rows == before + 5 * todo.operators * SERIES_OF_AN_OPERATOR
