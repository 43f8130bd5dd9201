"""Rows that stay on disk: the same answers as from memory, whatever arrives, changes, goes or is replaced."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dashboard.store import Snapshot, Store, chunks, jobs, open_store, pool, tidy
from dashboard.store import known as known_module
from dashboard.store.files import Scanner
from dashboard.store.schema import MEASUREMENTS
from dashboard.upkeep import rebuild
from tests.store import make

ALL = sorted(MEASUREMENTS)


@pytest.fixture
def sealing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that is read goes to disk, however little it is."""
    monkeypatch.setattr(tidy, "MOST_IN_MEMORY", 0)


def _run(results: Path, number: int, operator: str = "softmax", **changes: Any) -> Path:
    slow = 1.0 + number / 100
    rows = [make.measurement(name, time=1000.0 * slow) for name in ("torch_eager", "triton_row")]
    given = {
        "run_id": f"run{number:03}",
        "commit": f"{number:040}",
        "commit_time": f"2026-01-01T00:{number:02}:00+00:00",
        "started": f"2026-01-01T00:{number:02}:30+00:00",
    }
    return make.record(results, *rows, operator=operator, **{**given, **changes})


def _sealed(store: Store) -> list[chunks.Chunk]:
    return [each.chunk for each in store.snapshot.shown if each.chunk.path is not None]


def _sorted(frame: pl.DataFrame) -> list[dict[str, Any]]:
    return sorted(frame.select(ALL).to_dicts(), key=lambda row: (row["source"], row["implementation"], row["shape"]))


def _answers(snapshot: Snapshot) -> list[Any]:
    """What pages ask, as plain data."""
    return [
        snapshot.rows,
        _sorted(snapshot.measurements),
        _sorted(snapshot.latest),
        _sorted(snapshot.of("nvidia-h200", "groundspeed").collect()),
        _sorted(snapshot.of("nvidia-h200", "groundspeed", "softmax").collect()),
        _sorted(snapshot.of("nvidia-l4", "groundspeed", "relu", [f"{1:040}"]).collect()),
        _sorted(snapshot.of(commits=[f"{1:040}", f"{2:040}"]).collect()),
        _sorted(snapshot.of(project="asv").filter(pl.col("operator") == "time_x").collect()),
        sorted(snapshot.problems.rows()),
    ]


def _history(results: Path) -> None:
    for number in range(4):
        for machine in ("nvidia-h200", "nvidia-l4"):
            for operator in ("softmax", "relu"):
                _run(results, number, operator, machine=machine, run_id=f"{machine}-{number}")
    make.asv(results, {"time_x": [[1.0, None], [["1", "2"]]]})


def test_what_is_on_disk_is_what_was_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _history(tmp_path)
    before = _answers(open_store(tmp_path).snapshot)
    monkeypatch.setattr(tidy, "MOST_IN_MEMORY", 0)
    store, _ = rebuild(tmp_path)
    assert len(_sealed(store)) == len(store.snapshot.shown) == 5, "a chunk for each machine and operator, and asv's"
    assert _answers(store.snapshot) == before
    assert _answers(open_store(tmp_path).snapshot) == before
    assert dict(store.snapshot.measurements.schema) == MEASUREMENTS
    assert dict(store.snapshot.of("nvidia-h200", "groundspeed", "nothing").collect().schema) == MEASUREMENTS


def test_what_is_not_asked_for_is_not_read(tmp_path: Path, sealing: None) -> None:
    """Of other machines and operators not even the file is opened."""
    _history(tmp_path)
    store = open_store(tmp_path)
    for chunk in _sealed(store):
        if ("nvidia-h200", "groundspeed", "softmax") not in chunk.partitions:
            assert chunk.path is not None
            chunk.path.write_bytes(b"no Parquet")
    assert store.snapshot.of("nvidia-h200", "groundspeed", "softmax").collect().height == 8
    assert store.snapshot.of("nvidia-h200", "groundspeed", "softmax", ["f" * 40]).collect().is_empty()


@pytest.mark.usefixtures("sealing")
def test_files_that_come_change_and_go(tmp_path: Path) -> None:
    first, second = _run(tmp_path, 1), _run(tmp_path, 2)
    foreign = make.asv(tmp_path, {"time_x": [[1.0], []]})
    store = open_store(tmp_path)
    _run(tmp_path, 3)
    make.asv(tmp_path, {"time_x": [[2.5], []]})
    os.utime(foreign, ns=(1, 1))
    assert store.refresh()
    values = store.snapshot.of(project="asv").collect()["value"].to_list()
    assert values == [2.5] and store.snapshot.rows == 7 and store.snapshot.measurements.height == 7
    second.unlink()
    (tmp_path / "nvidia-h200" / "records" / "run003" / "softmax.jsonl.gz").unlink()
    assert store.refresh()
    assert set(store.snapshot.latest["run_id"]) == {"run001", "01234567 virtualenv-py3.12"}
    assert store.snapshot.rows == store.snapshot.measurements.height == 3
    first.unlink()
    assert store.refresh() and store.snapshot.rows == 1
    assert _answers(open_store(tmp_path).snapshot) == _answers(store.snapshot)


@pytest.mark.usefixtures("sealing")
def test_copies_of_files_and_of_measurements(tmp_path: Path) -> None:
    path = _run(tmp_path, 1, commit=make.COMMIT)
    copy = tmp_path / "elsewhere" / "copy.jsonl.gz"
    copy.parent.mkdir()
    copy.write_bytes(path.read_bytes())
    make.asv(tmp_path, {"device_time.softmax.cold": [[1e-5], []], "time_x": [[1.0], []]}, machine="nvidia-h200")
    store = open_store(tmp_path)
    assert sorted(store.snapshot.measurements["operator"]) == ["softmax", "softmax", "time_x"]
    assert store.snapshot.rows == 3 and store.snapshot.problems["file"].to_list() == ["elsewhere/copy.jsonl.gz"]
    path.unlink()
    assert store.refresh()
    assert set(store.snapshot.of(project="groundspeed").collect()["source"]) == {"elsewhere/copy.jsonl.gz"}
    copy.unlink()
    assert store.refresh()
    assert sorted(store.snapshot.measurements["operator"]) == ["device_time.softmax.cold", "time_x"]
    assert store.snapshot.rows == store.snapshot.latest.height == 2


@pytest.mark.usefixtures("sealing")
def test_a_run_a_minute_makes_few_files(tmp_path: Path) -> None:
    """A partition's chunks double from one to the next: 40 runs are at most six."""
    store = open_store(tmp_path)
    for number in range(40):
        _run(tmp_path, number, commit_time="2026-01-01T00:00:00+00:00")
        assert store.refresh()
        assert len(_sealed(store)) <= 6
    assert store.snapshot.measurements.height == store.snapshot.rows == 80
    assert open_store(tmp_path).snapshot.latest["run_id"].to_list() == ["run039", "run039"]


@pytest.mark.usefixtures("sealing")
@pytest.mark.parametrize("how", ["compact", "damage"])
def test_a_cache_that_another_process_makes_anew(tmp_path: Path, how: str) -> None:
    """A dashboard that holds a snapshot reads what is there next; no page after that is lost."""
    _history(tmp_path)
    store = open_store(tmp_path)
    before, version = _answers(store.snapshot), store.snapshot.version
    if how == "compact":
        rebuild(tmp_path)
    else:
        for path in (tmp_path / ".cache").rglob("*.parquet"):
            path.unlink()
    assert _answers(store.snapshot) == before and store.snapshot.version == version


@pytest.mark.usefixtures("sealing")
def test_replaced_files_stay_for_readers_of_an_older_snapshot(tmp_path: Path) -> None:
    _run(tmp_path, 1)
    store = open_store(tmp_path)
    held = store.snapshot
    for path in (tmp_path / ".cache").rglob("*.parquet"):
        os.utime(path, (1, 1))  # long ago: only the moment it was replaced counts
    _run(tmp_path, 2)
    assert store.refresh() and store.snapshot is not held
    assert held.of().collect().height == 2 and len(_sealed(store)) == 1
    for path in (tmp_path / ".cache").rglob("*"):
        os.utime(path, (1, 1))
    _run(tmp_path, 3)
    store.refresh()
    assert not held.intact(), "what nothing names for an hour goes"


@pytest.mark.usefixtures("sealing")
def test_without_a_place_on_disk_rows_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _history(tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tidy, "seal", full)
    store = open_store(tmp_path)
    assert not _sealed(store) and store.snapshot.measurements.height == 34


def test_very_many_files_are_read_a_lot_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read is kept after each lot: whoever interrupts the first start loses the last one only."""
    _history(tmp_path)
    whole = _answers(open_store(tmp_path).snapshot)
    monkeypatch.setattr(known_module, "MOST_AT_ONCE", 5)
    lots: list[int] = []
    inner = pool.read_all

    def read(results: Path, files: dict[str, Any], *rest: Any) -> Any:
        lots.append(len(files))
        if len(lots) == 3:
            raise KeyboardInterrupt
        return inner(results, files, *rest)

    monkeypatch.setattr(pool, "read_all", read)
    with pytest.raises(KeyboardInterrupt):
        rebuild(tmp_path)
    assert lots == [5, 5, 5]
    assert _answers(open_store(tmp_path).snapshot) == whole
    assert lots[3:] == [5, 2], "what the interrupted start had read was read again"


def test_chunks_end_where_they_are_large_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At so many rows; and at fewer, which are enough to be sealed, where another machine or operator begins."""
    _history(tmp_path)
    monkeypatch.setattr(jobs, "SEALED_ROWS", 2)
    monkeypatch.setattr(jobs, "MOST_ROWS", 6)
    found = open_store(tmp_path).snapshot.shown
    ours = [each.chunk for each in found if all(project == "groundspeed" for _, project, _ in each.chunk.partitions)]
    assert sorted(chunk.height for chunk in ours) == [2, 2, 2, 2, 6, 6, 6, 6]
    assert all(len(chunk.partitions) == 1 for chunk in ours)


def test_a_run_that_did_not_change_is_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of years of runs, a refresh looks at the folders alone."""
    for number in range(3):
        path = _run(tmp_path, number)
        os.utime(path.parent, (1_700_000_000, 1_700_000_000 + number))
    store = open_store(tmp_path)
    store.refresh()
    listed: list[str] = []
    inner = os.scandir

    def scandir(path: Any) -> Any:
        listed.append(Path(path).name)
        return inner(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert not store.refresh()
    assert not [name for name in listed if name.startswith("run")]
    _run(tmp_path, 1, "relu")
    assert store.refresh() and [name for name in listed if name.startswith("run")].count("run001") >= 1
    assert "run002" not in listed and store.snapshot.rows == 8


def test_a_folder_that_changed_just_now_is_listed_again(tmp_path: Path) -> None:
    """Its time may not change with what comes within the same tick of the clock."""
    folder = _run(tmp_path, 1).parent
    store = open_store(tmp_path)
    store.refresh()
    stamp = folder.stat()
    _run(tmp_path, 1, "relu")
    os.utime(folder, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert store.refresh() and store.snapshot.rows == 4


def test_what_was_damaged_is_looked_at_each_time_and_what_was_read_is_not(tmp_path: Path) -> None:
    good, bad = _run(tmp_path, 1), _run(tmp_path, 2)
    whole = bad.read_bytes()
    bad.write_bytes(whole[:40])
    for path in (good, bad):
        os.utime(path.parent, (1_700_000_000, 1_700_000_000))
    store = open_store(tmp_path)
    store.refresh()
    bad.write_bytes(whole)
    assert store.refresh() and store.snapshot.rows == 4 and store.snapshot.problems.is_empty()
    scanner = Scanner(tmp_path)
    os.utime(bad.parent, (1_700_000_000, 1_700_000_000))
    found = scanner.scan(store._known.files)
    assert found.unchanged == {"nvidia-h200/records/run001", "nvidia-h200/records/run002"} and not found.results


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every folder is kept as listed; collects the runs' folders that are listed."""
    monkeypatch.setattr("dashboard.store.store._MANY_FOLDERS", 1)
    found: list[str] = []
    inner = os.listdir

    def listdir(path: Any) -> Any:
        if Path(path).parent.name == "records":
            found.append(Path(path).name)
        return inner(path)

    monkeypatch.setattr(os, "listdir", listdir)
    return found


def _settle(path: Path, second: int = 0) -> None:
    """As if it had been written long ago: the file before its folder."""
    os.utime(path, (1_700_000_000, 1_700_000_000))
    os.utime(path.parent, (1_700_000_000, 1_700_000_000 + second))


@pytest.mark.usefixtures("sealing")
def test_the_next_start_lists_only_the_folders_that_changed(tmp_path: Path, listed: list[str]) -> None:
    for number in range(3):
        _settle(_run(tmp_path, number), number)
    open_store(tmp_path).refresh()  # the second look finds what the first has read unchanged, and keeps that
    listed.clear()
    assert open_store(tmp_path).snapshot.rows == 6 and not listed
    _run(tmp_path, 1, "relu")
    assert open_store(tmp_path).snapshot.rows == 8 and set(listed) == {"run001"}


def test_a_lost_chunk_is_read_again_though_the_folder_did_not_change(
    tmp_path: Path, listed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operators of a run lie in several chunks; what is kept of its folder must not hide that one is gone."""
    monkeypatch.setattr(jobs, "SEALED_ROWS", 2)
    for operator in ("relu", "softmax"):
        path = _run(tmp_path, 1, operator)
    _settle(path)
    os.utime(path.with_name("relu.jsonl.gz"), (1_700_000_000, 1_700_000_000))
    os.utime(path.parent, (1_700_000_000, 1_700_000_000))
    store = open_store(tmp_path)
    store.refresh()
    lost, _ = (each.chunk for each in store.snapshot.shown)
    next((tmp_path / ".cache").rglob(f"{lost.name}.runs.arrow")).unlink()
    assert open_store(tmp_path).snapshot.rows == 4


def test_the_time_of_a_folder_that_is_older_than_its_files_is_not_believed(tmp_path: Path, listed: list[str]) -> None:
    """Such as on a mounted bucket, whose folders have one time for ever."""
    path = _run(tmp_path, 1)
    os.utime(path.parent, (0, 0))
    store = open_store(tmp_path)
    store.refresh()
    _run(tmp_path, 1, "relu")
    os.utime(path.parent, (0, 0))
    assert store.refresh() and store.snapshot.rows == 4


def test_after_a_first_start_over_very_many_files_none_of_their_folders_is_listed(
    tmp_path: Path, listed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_module, "MOST_AT_ONCE", 2)
    for number in range(5):
        _settle(_run(tmp_path, number))
    open_store(tmp_path)
    listed.clear()
    assert open_store(tmp_path).snapshot.rows == 10 and not listed
