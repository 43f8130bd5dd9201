"""The store over time: what is read again, what is kept, what the cache holds, what happens when things go away."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dashboard.store import Store, open_store, pool
from dashboard.store.cache import INDEX
from dashboard.store.files import Stamp
from dashboard.store.schema import MACHINES, MEASUREMENTS, PROBLEMS, RUNS, SCHEMA_VERSION
from tests.store import make


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collects the files that are read."""
    found: list[str] = []
    inner = pool.read_all

    def spy(results: Path, files: dict[str, Stamp], *rest: Any) -> Any:
        found.extend(files)
        return inner(results, files, *rest)

    monkeypatch.setattr(pool, "read_all", spy)
    return found


def _run(results: Path, number: int, **changes: Any) -> Path:
    return make.record(results, make.measurement(time=1000.0 + number), run_id=f"run{number:03}", **changes)


def _sources(store: Store) -> list[str]:
    return sorted(store.snapshot.measurements["source"].cast(pl.String))


def test_frames_have_their_schema_however_they_came_to_be(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    _check_schema(store)
    _run(tmp_path, 1)
    make.asv(tmp_path, {"time_x": [[1.0], []]})
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    assert store.refresh()
    _check_schema(store)
    _check_schema(open_store(tmp_path))


def _check_schema(store: Store) -> None:
    shown = store.snapshot
    for frame, schema in (
        (shown.measurements, MEASUREMENTS),
        (shown.latest, MEASUREMENTS),
        (shown.runs, RUNS),
        (shown.machines, MACHINES),
        (shown.problems, PROBLEMS),
    ):
        assert dict(frame.schema) == schema


def test_only_what_is_new_or_changed_is_read(tmp_path: Path, read: list[str]) -> None:
    first, second = _run(tmp_path, 1), make.asv(tmp_path, {"time_x": [[1.0], []]})
    (tmp_path / "box" / "bad.json").write_text("{", encoding="utf-8")
    store = open_store(tmp_path)
    assert len(read) == 3
    read.clear()
    version = store.snapshot.version
    assert not store.refresh() and read == [] and store.snapshot.version == version

    third = _run(tmp_path, 2)
    assert store.refresh()
    assert read == [third.relative_to(tmp_path).as_posix()] and store.snapshot.version != version
    read.clear()

    make.asv(tmp_path, {"time_x": [[2.5], []]})
    os.utime(second, ns=(1, 1))
    assert store.refresh() and read == [second.relative_to(tmp_path).as_posix()]
    assert store.snapshot.measurements.filter(pl.col("project") == "asv")["value"].to_list() == [2.5]
    read.clear()

    first.unlink()
    assert store.refresh() and read == []
    assert _sources(store) == sorted(path.relative_to(tmp_path).as_posix() for path in (second, third))


def test_the_next_start_reads_the_cache(tmp_path: Path, read: list[str]) -> None:
    _run(tmp_path, 1)
    make.asv(tmp_path, {"time_x": [[1.0], []]})
    (tmp_path / "box" / "bad.json").write_text("{", encoding="utf-8")
    before = open_store(tmp_path).snapshot
    read.clear()
    after = open_store(tmp_path).snapshot
    assert read == []
    assert after.version == before.version
    for name in ("measurements", "latest", "runs", "machines", "problems"):
        one, other = getattr(before, name), getattr(after, name)
        assert one.sort(pl.all()).equals(other.sort(pl.all())), name
    assert (tmp_path / ".cache" / ".gitignore").read_text(encoding="utf-8") == "*\n"


def test_asv_finds_no_result_file_in_the_cache(tmp_path: Path) -> None:
    """It walks results/ for *.json, hidden folders too, and warns of what has no machine.json beside it."""
    make.asv(tmp_path, {"time_x": [[1.0], []]})
    _run(tmp_path, 1)
    open_store(tmp_path)
    assert (next((tmp_path / ".cache").glob("store-*")) / INDEX).is_file()
    assert list((tmp_path / ".cache").rglob("*.json")) == []


@pytest.mark.parametrize("damage", ["delete", "truncate index", "truncate chunks", "foreign index", "delete chunks"])
def test_a_damaged_cache_is_made_again(tmp_path: Path, read: list[str], damage: str) -> None:
    _run(tmp_path, 1)
    before = open_store(tmp_path).snapshot
    (folder,) = (tmp_path / ".cache").glob("store-*")
    for path in list(folder.iterdir()):
        if damage == "delete":
            path.unlink()
        elif damage == "truncate index" and path.name == INDEX:
            path.write_bytes(path.read_bytes()[:20])
        elif damage == "foreign index" and path.name == INDEX:
            path.write_text('{"files": [1]}', encoding="utf-8")
        elif damage == "truncate chunks" and path.suffix == ".arrow":
            path.write_bytes(path.read_bytes()[:100])
        elif damage == "delete chunks" and path.suffix == ".arrow":
            path.unlink()
    read.clear()
    after = open_store(tmp_path).snapshot
    assert len(read) == 1
    assert after.measurements.equals(before.measurements)


def test_a_changed_unit_or_parameter_name_reads_the_files_it_concerns_again(tmp_path: Path, read: list[str]) -> None:
    make.benchmarks(tmp_path, track_a=("things", ["n"]), track_b=("things", ["n"]))
    make.asv(tmp_path, {"track_a": [[1.0], [["5"]]]}, machine="a")
    make.asv(tmp_path, {"track_b": [[1.0], [["5"]]]}, machine="b")
    store = open_store(tmp_path)
    read.clear()
    make.benchmarks(tmp_path, track_a=("points", ["size"]), track_b=("things", ["n"]), track_new=("x", []))
    assert store.refresh()
    assert [path.partition("/")[0] for path in read] == ["a"]
    rows = {row["operator"]: row for row in store.snapshot.measurements.to_dicts()}
    assert (rows["track_a"]["unit"], rows["track_a"]["shape"]) == ("points", "size=5")
    assert (rows["track_b"]["unit"], rows["track_b"]["shape"]) == ("things", "n=5")


def test_changes_while_nobody_looked_are_seen_at_the_next_start(tmp_path: Path, read: list[str]) -> None:
    make.benchmarks(tmp_path, track_a=("things", ["n"]))
    make.asv(tmp_path, {"track_a": [[1.0], [["5"]]]})
    gone = _run(tmp_path, 1)
    open_store(tmp_path)
    read.clear()
    gone.unlink()
    make.benchmarks(tmp_path, track_a=("points", ["n"]))
    shown = open_store(tmp_path).snapshot
    assert [path.partition("/")[0] for path in read] == ["box"]
    assert shown.measurements.select("operator", "unit").rows() == [("track_a", "points")]


def test_a_machine_that_is_renamed(tmp_path: Path) -> None:
    path = make.asv(tmp_path, {"time_x": [[1.0], []]}, params={"os": "Linux"})
    store = open_store(tmp_path)
    (path.parent / "machine.json").write_text(json.dumps({"machine": "box2", "version": 1}), encoding="utf-8")
    assert store.refresh()
    assert store.snapshot.machines["machine"].to_list() == ["box2"]


def test_a_run_a_minute_does_not_split_the_frames_into_ever_more_pieces(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for number in range(40):
        _run(tmp_path, number)
        assert store.refresh()
    assert store.snapshot.measurements.height == 40
    assert store.snapshot.measurements.n_chunks() <= 16
    (tmp_path / "nvidia-h200" / "records" / "run005" / "softmax.jsonl.gz").unlink()
    assert store.refresh()
    assert "run005" not in store.snapshot.measurements["run_id"].cast(pl.String).to_list()
    again = open_store(tmp_path).snapshot
    assert sorted(again.measurements["run_id"]) == sorted(store.snapshot.measurements["run_id"])


def test_what_a_reader_holds_never_changes(tmp_path: Path) -> None:
    _run(tmp_path, 1)
    store = open_store(tmp_path)
    held = store.snapshot
    rows = held.measurements.to_dicts()
    _run(tmp_path, 2)
    assert store.refresh()
    assert held.measurements.to_dicts() == rows and store.snapshot is not held


def test_a_results_folder_that_vanishes_keeps_its_rows_and_says_so(tmp_path: Path) -> None:
    results = tmp_path / "results"
    _run(results, 1)
    store = open_store(results)
    version = store.snapshot.version
    shutil.move(results, tmp_path / "away")
    assert store.refresh()
    assert store.snapshot.measurements.height == 1 and store.snapshot.version != version
    assert store.snapshot.problems["file"].to_list() == [str(results)]
    assert not store.refresh()
    assert not results.exists()
    shutil.move(tmp_path / "away", results)
    assert store.refresh()
    assert store.snapshot.problems.is_empty() and store.snapshot.version == version


def test_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    results = tmp_path / "results"
    store = open_store(results)
    assert store.snapshot.measurements.is_empty() and store.snapshot.problems.height == 1
    assert not results.exists()
    _run(results, 1)
    assert store.refresh()
    assert store.snapshot.measurements.height == 1 and store.snapshot.problems.is_empty()


def test_links_and_hidden_folders_are_passed_over(tmp_path: Path) -> None:
    outside, results = tmp_path / "outside", tmp_path / "results"
    path = _run(outside, 1)
    make.asv(results, {"time_x": [[1.0], []]})
    (results / "linked").symlink_to(outside)
    (results / "box" / "linked.jsonl.gz").symlink_to(path)
    (results / ".hidden").mkdir()
    (results / ".hidden" / "x.json").write_text("{", encoding="utf-8")
    shown = open_store(results).snapshot
    assert shown.measurements["operator"].to_list() == ["time_x"] and shown.problems.is_empty()


def test_brackets_in_the_results_path(tmp_path: Path) -> None:
    results = tmp_path / "a [b]* {c}"
    _run(results, 1)
    open_store(results)
    assert open_store(results).snapshot.measurements.height == 1


def test_without_a_place_for_the_cache_everything_is_still_shown(tmp_path: Path) -> None:
    _run(tmp_path, 1)
    (tmp_path / ".cache").write_text("in the way", encoding="utf-8")
    store = open_store(tmp_path)
    assert store.snapshot.measurements.height == 1
    _run(tmp_path, 2)
    assert store.refresh() and store.snapshot.measurements.height == 2


def test_many_threads_refreshing_and_reading(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    failures: list[BaseException] = []
    done = threading.Event()

    def reader() -> None:
        try:
            seen = 0
            while not done.is_set():
                store.refresh()
                shown = store.snapshot
                assert shown.measurements.height == shown.runs.height >= seen
                seen = shown.runs.height
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=reader) for _ in range(6)]
    for thread in threads:
        thread.start()
    for number in range(20):
        _run(tmp_path, number)
    done.set()
    for thread in threads:
        thread.join()
    store.refresh()
    assert not failures and store.snapshot.runs.height == 20


def test_worker_processes_read_the_same_as_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        _run(tmp_path, number, operator=f"op{number % 2}")
        make.asv(tmp_path, {"time_x": [[1.0, None], [["1", "2"]]]}, commit=f"{number}" * 40)
    (tmp_path / "box" / "bad.json").write_text("{", encoding="utf-8")
    here = open_store(tmp_path).snapshot
    shutil.rmtree(tmp_path / ".cache")
    monkeypatch.setattr(pool, "FEW_BYTES", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    there = open_store(tmp_path).snapshot
    assert there.version == here.version
    order = ["source", "operator", "shape"]
    assert there.measurements.sort(order).equals(here.measurements.sort(order))
    assert there.problems.equals(here.problems)


def test_a_worker_that_dies_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        _run(tmp_path, number)
    monkeypatch.setattr(pool, "FEW_BYTES", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    assert open_store(tmp_path).snapshot.measurements.height == 4


def test_the_store_never_imports_torch_or_dash() -> None:
    code = (
        "import sys, dashboard.store, dashboard.store.queries, dashboard.store.worker\n"
        "heavy = {'torch', 'dash', 'plotly', 'asv', 'triton', 'cupy'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_caches_of_older_schemas_go_when_one_is_written(tmp_path: Path) -> None:
    kept = [f"store-{SCHEMA_VERSION + 1}-1.0.0", f"store-{SCHEMA_VERSION}-0.0.1", "store-x-1.0.0", "store-1", "notes"]
    for name in ("store-1-0.0.0", f"store-{SCHEMA_VERSION - 1}-1.0.0", *kept):
        (tmp_path / ".cache" / name).mkdir(parents=True)
    _run(tmp_path, 1)
    open_store(tmp_path)
    left = {path.name for path in (tmp_path / ".cache").iterdir()}
    assert left == {*kept, ".gitignore", f"store-{SCHEMA_VERSION}-{pl.__version__}"}
