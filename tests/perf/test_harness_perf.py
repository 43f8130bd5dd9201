"""What the harness itself costs: pytest-benchmark's figures, nothing here fails for being slow.

    pytest tests/perf/test_harness_perf.py --benchmark-only

Without ``--benchmark-only`` they are skipped: a figure taken beside other tests says nothing.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from groundspeed.digest import implementation_digest
from groundspeed.measure.process import worker_environment
from groundspeed.measure.supervisor import supervise
from groundspeed.records import QUANTITIES, Footer, Record, read_record, write_record
from groundspeed.tree import Tree
from tests.core.scratch import ADD, job, make_tree
from tests.core.test_records import HEADER, ROW

pytest.importorskip("pytest_benchmark")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _alone(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("benchmark_only"):
        pytest.skip("a benchmark of the harness; type: pytest tests/perf/test_harness_perf.py --benchmark-only")


def python(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.parametrize("module", ["", "groundspeed.cli", "groundspeed.session", "groundspeed.records"])
def test_import(benchmark: Any, module: str) -> None:
    """A fresh interpreter that imports it and nothing else; the first row is the interpreter alone."""
    code = f"import sys, {module or 'sys'}; assert 'torch' not in sys.modules"
    benchmark.pedantic(python, ("-c", code), rounds=10, warmup_rounds=1)


def test_command_line(benchmark: Any) -> None:
    """``groundspeed list``, from the shell and back."""
    benchmark.pedantic(python, ("-m", "groundspeed", "list"), rounds=5, warmup_rounds=1)


@pytest.fixture(scope="module")
def record() -> Record:
    """A full tier's: 12 implementations on 12 cases, 30 rounds of four quantities."""
    digits = random.Random(0)
    rows = tuple(
        msgspec.structs.replace(ROW, samples={name: [1e6 * digits.random() for _ in range(30)] for name in QUANTITIES})
        for _ in range(144)
    )
    return Record(HEADER, rows, Footer(len(rows)))


def test_write_record(benchmark: Any, record: Record, tmp_path: Path) -> None:
    paths = iter(tmp_path / f"{number}.jsonl.gz" for number in range(1_000_000))
    benchmark(lambda: write_record(next(paths), record))


def test_read_record(benchmark: Any, record: Record, tmp_path: Path) -> None:
    write_record(tmp_path / "a.jsonl.gz", record)
    assert benchmark(read_record, tmp_path / "a.jsonl.gz") == record


def test_list_the_tree(benchmark: Any) -> None:
    """Every operator and implementation of this repository with its idea, no import."""

    def listing() -> int:
        tree = Tree(ROOT / "impls")
        return sum(bool(one.idea) for operator in tree.operators() for one in tree.implementations(operator))

    assert benchmark(listing) > 20


def test_digest_the_tree(benchmark: Any) -> None:
    tree = Tree(ROOT / "impls")
    files = [one.files for operator in tree.operators() for one in tree.implementations(operator)]
    benchmark(lambda: [implementation_digest(tree.root, one) for one in files])


def test_seconds_for_each_measurement(benchmark: Any, tmp_path: Path) -> None:
    """A trivial operator on the CPU, 8 implementations × 2 cases in one worker, its start included.

    ``extra_info`` has the split by phase, and the seconds for each (implementation, case) without the worker's start.
    """
    root = make_tree(tmp_path, {"double": {f"torch_add{number}": ADD for number in range(7)}})
    asked = job(root, seconds=0.05)
    outcome = benchmark.pedantic(
        supervise, (asked, worker_environment({}), lambda progress: None), rounds=3, warmup_rounds=1
    )
    assert {row.status for row in outcome.rows.values()} == {"ok"} and len(outcome.rows) == 16
    split = {name: round(seconds, 4) for name, seconds in outcome.seconds.items()}
    measuring = sum(seconds for name, seconds in split.items() if name not in ("start", "exit", "load"))
    benchmark.extra_info.update(split=split, seconds_each=round(measuring / len(outcome.rows), 4))
