"""Nothing lost, nothing counted twice: copies of record files, runners that push at once, clocks, writes cut short."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl

from dashboard.store import Store, open_store
from groundspeed.records import Environment
from tests.store import make


def _rows(store: Store) -> list[tuple[str, str]]:
    rows = store.snapshot.measurements
    return sorted(rows.select(pl.col("source", "run_id").cast(pl.String)).iter_rows())


def _copy(path: Path, to: Path) -> Path:
    to.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(path, to))


def test_a_copied_record_counts_once_whatever_the_copy_is_called(tmp_path: Path) -> None:
    path = make.record(tmp_path, make.measurement())
    copies = [
        _copy(path, path.with_name("softmax (copy).jsonl.gz")),
        _copy(path, tmp_path / "backup" / "softmax.jsonl.gz"),
        _copy(path, tmp_path / "other-machine/records" / path.parent.name / path.name),
    ]
    store = open_store(tmp_path)
    (row,) = store.snapshot.measurements.to_dicts()
    assert row["source"] == path.relative_to(tmp_path).as_posix()
    assert store.snapshot.latest.height == store.snapshot.runs.height == 1
    told = dict(store.snapshot.problems.iter_rows())
    assert set(told) == {copy.relative_to(tmp_path).as_posix() for copy in copies}
    assert all("is a copy of nvidia-h200/records/" in reason for reason in told.values())


def test_copies_come_and_go_while_the_store_is_open(tmp_path: Path) -> None:
    path = make.record(tmp_path, make.measurement())
    store = open_store(tmp_path)
    copy = _copy(path, tmp_path / "a" / "copy.jsonl.gz")
    again = _copy(path, tmp_path / "b" / "copy.jsonl.gz")
    store.refresh()
    assert _rows(store) == [(path.relative_to(tmp_path).as_posix(), path.parent.name)]
    path.unlink()  # the copies are all that is left: one of them counts
    store.refresh()
    assert _rows(store) == [("a/copy.jsonl.gz", path.parent.name)]
    assert store.snapshot.problems["file"].to_list() == ["b/copy.jsonl.gz"]
    copy.unlink()
    store.refresh()
    assert _rows(store) == [("b/copy.jsonl.gz", path.parent.name)] and store.snapshot.problems.is_empty()
    _copy(again, path)
    store.refresh()
    assert _rows(store) == [(path.relative_to(tmp_path).as_posix(), path.parent.name)]
    assert _rows(open_store(tmp_path)) == _rows(store), "another answer from the cache"


def test_a_copy_counts_where_the_record_in_its_place_is_damaged(tmp_path: Path) -> None:
    path = make.record(tmp_path, make.measurement())
    _copy(path, tmp_path / "a" / "copy.jsonl.gz")
    path.write_bytes(path.read_bytes()[:50])
    store = open_store(tmp_path)
    assert [source for source, _ in _rows(store)] == ["a/copy.jsonl.gz"]
    assert "cut short" in dict(store.snapshot.problems.iter_rows())[path.relative_to(tmp_path).as_posix()]


def test_two_runners_of_one_kind_that_push_at_once_lose_nothing(tmp_path: Path) -> None:
    """They write into one folder through two clones: no file of one has the name of a file of the other."""
    clones = [tmp_path / "one", tmp_path / "other"]
    for number, clone in enumerate(clones):
        make.record(clone, make.measurement(time=100.0 + number), run_id=f"20260101T000000Z-01234567-aaa{number}")
    merged = tmp_path / "merged"
    for clone in clones:
        shutil.copytree(clone, merged, dirs_exist_ok=True)
    store = open_store(merged)
    assert [run for _, run in _rows(store)] == [
        "20260101T000000Z-01234567-aaa0",
        "20260101T000000Z-01234567-aaa1",
    ]
    assert store.snapshot.problems.is_empty()


def test_runs_of_one_commit_are_all_kept_and_the_one_begun_last_is_shown(tmp_path: Path) -> None:
    for hour, time in ((1, 100.0), (3, 300.0), (2, 200.0)):
        started = f"2026-01-01T0{hour}:00:00+00:00"
        make.record(tmp_path, make.measurement(time=time), run_id=f"2026010{hour}", started=started)
    snapshot = open_store(tmp_path).snapshot
    assert snapshot.measurements.height == 3 and snapshot.latest["run_id"].to_list() == ["20260103"]


def test_a_clock_that_ran_backwards_does_not_bring_an_older_commit_to_the_front(tmp_path: Path) -> None:
    """Commits are ordered by their own times: only among runs of one commit does the runner's clock decide."""
    make.record(tmp_path, make.measurement(time=100.0), run_id="a", started="2030-01-01T00:00:00+00:00")
    later = {"commit": "f" * 40, "commit_time": "2026-01-02T00:00:00+00:00"}
    make.record(tmp_path, make.measurement(time=200.0), run_id="b", started="1970-01-01T00:00:00+00:00", **later)
    snapshot = open_store(tmp_path).snapshot
    assert snapshot.latest["run_id"].to_list() == ["b"] and snapshot.measurements.height == 2


def test_a_file_that_is_still_being_copied_counts_once_it_is_whole(tmp_path: Path) -> None:
    path = make.record(tmp_path, make.measurement())
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    store = open_store(tmp_path)
    assert not _rows(store) and store.snapshot.problems.height == 1
    path.write_bytes(whole)
    store.refresh()
    assert len(_rows(store)) == 1 and store.snapshot.problems.is_empty()


def test_what_an_interrupted_write_leaves_is_not_read(tmp_path: Path) -> None:
    path = make.record(tmp_path, make.measurement())
    path.with_name(f".{path.name}.x1y2z3").write_bytes(path.read_bytes()[:100])
    store = open_store(tmp_path)
    assert len(_rows(store)) == 1 and store.snapshot.problems.is_empty()


def test_runs_under_two_combinations_of_a_matrix_are_two_series(tmp_path: Path) -> None:
    for number, version in enumerate(("2.11.0", "2.13.0")):
        environment = Environment("cuda", "NVIDIA H200", "3.12", "Linux", torch=version)
        make.record(tmp_path, make.measurement(), run_id=str(number), environment=environment, matrix=f"torch{version}")
    assert sorted(open_store(tmp_path).snapshot.latest["environment"]) == ["torch2.11.0", "torch2.13.0"]


def test_what_else_is_kept_in_a_machines_folder_is_not_taken_for_records(tmp_path: Path) -> None:
    path = make.record(tmp_path, make.measurement())
    for folder in ("noise", "soak", "gate-trials", "calibration", "profiles/softmax"):
        other = tmp_path / "nvidia-h200" / folder / "20260101.jsonl.gz"
        other.parent.mkdir(parents=True)
        other.write_bytes(b"something else")
    _copy(path, tmp_path / "soak/records/r/softmax.jsonl.gz")  # a machine may be called so
    store = open_store(tmp_path)
    assert len(_rows(store)) == 1 and store.snapshot.problems["file"].to_list() == ["soak/records/r/softmax.jsonl.gz"]
