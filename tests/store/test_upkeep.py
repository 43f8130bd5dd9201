"""groundspeed store verify, compact and prune."""

from __future__ import annotations

import gzip
import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dashboard.store import open_store
from groundspeed.cli import main
from groundspeed.records import SELECTION_FILE, find_records
from tests.store import make

NOW = datetime.now(UTC)


@pytest.fixture
def store(tmp_path, capsys):
    """Runs ``groundspeed store`` on a results folder: exit status, standard output, standard error."""
    results = tmp_path / "results"
    results.mkdir()

    def run(*typed: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(["store", *typed, "--results", str(results)])
        return status, *capsys.readouterr()

    run.results = results
    return run


def _day(number: int, **changes: object) -> dict[str, object]:
    return {"run_id": f"2026010{number}T000000Z-x", "started": f"2026-01-0{number}T01:00:00+00:00", **changes}


def _contents(results: Path) -> dict[str, bytes]:
    files = (path for path in results.rglob("*") if path.is_file() and ".cache" not in path.parts)
    return {str(path.relative_to(results)): path.read_bytes() for path in files}


def test_whole_records_pass(store):
    make.record(store.results, make.measurement(), **_day(1))
    make.record(store.results, make.measurement(), **_day(2))
    status, out, _ = store("verify")
    assert status == 0 and out == f"2 record files under {store.results}: all whole, each there once\n"


def test_each_fault_is_a_line_and_nothing_is_touched(store):
    results = store.results
    fine = make.record(results, make.measurement(), **_day(1))
    cut = make.record(results, make.measurement(), **_day(2))
    cut.write_bytes(cut.read_bytes()[:-20])
    future = make.record(results, make.measurement(), **_day(3))
    lines = gzip.decompress(future.read_bytes()).split(b"\n")
    lines[0] = json.dumps({**json.loads(lines[0]), "schema": 99}).encode()
    future.write_bytes(gzip.compress(b"\n".join(lines)))
    tomorrow = (NOW + timedelta(days=1)).isoformat()
    ahead = make.record(results, make.measurement(), run_id="ahead", started=tomorrow)
    undated = make.record(results, make.measurement(), run_id="undated", started="noon")
    copy = fine.with_name("copy.jsonl.gz")
    shutil.copy(fine, copy)
    moved = results / "renamed/records/r/relu.jsonl.gz"
    moved.parent.mkdir(parents=True)
    make.record(results, make.measurement(), run_id="gone").rename(moved)
    remnant = fine.with_name(".softmax.jsonl.gz.k3j2h1")
    remnant.write_bytes(b"half")
    before = _contents(results)

    status, out, _ = store("verify")
    told = dict(line.partition(": ")[::2] for line in out.splitlines())
    name = {
        path: path.relative_to(results).as_posix() for path in (fine, cut, future, ahead, undated, copy, moved, remnant)
    }
    assert status == 1 and _contents(results) == before and name[fine] not in told
    assert "cannot be read" in told[name[cut]] and "(not counted)" in told[name[cut]]
    assert "schema 99, this groundspeed reads 1: upgrade groundspeed (not counted)" in told[name[future]]
    assert "clock" in told[name[ahead]] and "not counted" not in told[name[ahead]]
    assert "'noon', which is no time" in told[name[undated]]
    assert told[name[copy]] == f"is a copy of {name[fine]}, which is counted; this one is not (not counted)"
    assert told[name[moved]] == "by its header belongs to nvidia-h200/records/gone/softmax.jsonl.gz"
    assert "interrupted" in told[name[remnant]]
    assert out.splitlines()[-1].endswith("7 record files under " + f"{results}: 4 not counted, 3 odd")


def test_verify_and_the_dashboard_agree_on_what_counts(store):
    results = store.results
    for number in range(1, 5):
        make.record(results, make.measurement(), **_day(number))
    first, second, *_ = find_records(results)
    first.write_bytes(b"no gzip")
    shutil.copy(second, results / "copy.jsonl.gz")
    _, out, _ = store("verify")
    left_out = {line.partition(": ")[0] for line in out.splitlines() if "(not counted)" in line}
    assert left_out == set(open_store(results).snapshot.problems["file"]) and len(left_out) == 2


def test_compact_rebuilds_the_cache_and_leaves_the_records(store):
    make.record(store.results, make.measurement(), **_day(1))
    stale = store.results / ".cache" / "store-1-0.0.0"
    stale.mkdir(parents=True)
    (stale / "old.arrow").write_bytes(b"x" * 5000)
    open_store(store.results)
    before = _contents(store.results)
    status, out, err = store("compact")
    assert status == 0 and not err and "1 rows of 1 files read" in out
    assert _contents(store.results) == before and not stale.exists()
    assert open_store(store.results).snapshot.measurements.height == 1
    assert len(list((store.results / ".cache").glob("store-*/index"))) == 1


def test_a_dashboard_that_is_open_meanwhile_goes_on(store):
    make.record(store.results, make.measurement(), **_day(1))
    opened = open_store(store.results)
    store("compact")
    make.record(store.results, make.measurement(), **_day(2))
    assert opened.refresh() and opened.snapshot.measurements.height == 2
    assert open_store(store.results).snapshot.measurements.height == 2


def test_prune_lists_and_deletes_only_with_yes(store):
    for number in (1, 2, 3):
        path = make.record(store.results, make.measurement(), **_day(number))
        if number > 1:
            (path.parent / SELECTION_FILE).write_text("{}")
    make.asv(store.results, {"time_x": [[1.0], []]})
    before = _contents(store.results)
    status, out, _ = store("prune", "--before", "2026-01-03")
    assert status == 0 and _contents(store.results) == before
    assert [line[:10] for line in out.splitlines()[:2]] == ["2026-01-01", "2026-01-02"]
    assert "2 records, " in out and "type it again with --yes" in out
    status, out, _ = store("prune", "--before", "2026-01-03", "--yes")
    assert status == 0 and out.count("deleted ") == 2 + 0 and "2 records deleted" in out
    left = _contents(store.results)
    runs = [f"nvidia-h200/records/2026010{n}T000000Z-x" for n in (1, 2)]
    assert set(before) - set(left) == {*(f"{run}/softmax.jsonl.gz" for run in runs), f"{runs[1]}/{SELECTION_FILE}"}
    assert not any((store.results / run).exists() for run in runs), "an empty folder was left"
    assert (store.results / f"nvidia-h200/records/20260103T000000Z-x/{SELECTION_FILE}").exists()
    assert all(before[name] == left[name] for name in left)
    assert store("prune", "--before", "2026-01-03")[1] == "nothing is that old\n"


def test_keep_counts_by_machine_and_operator(store):
    for number in (1, 2, 3):
        make.record(store.results, make.measurement(), **_day(number))
    make.record(store.results, make.measurement(), **_day(1, operator="relu"))
    make.record(store.results, make.measurement(), **_day(1, machine="nvidia-l4"))
    store("prune", "--keep", "2", "--yes")
    left = {path.relative_to(store.results).as_posix() for path in find_records(store.results)}
    assert left == {
        "nvidia-h200/records/20260101T000000Z-x/relu.jsonl.gz",
        "nvidia-h200/records/20260102T000000Z-x/softmax.jsonl.gz",
        "nvidia-h200/records/20260103T000000Z-x/softmax.jsonl.gz",
        "nvidia-l4/records/20260101T000000Z-x/softmax.jsonl.gz",
    }


def test_what_cannot_be_dated_is_kept_and_named(store):
    damaged = make.record(store.results, make.measurement(), **_day(1))
    damaged.write_bytes(b"no gzip")
    undated = make.record(store.results, make.measurement(), run_id="u", started="noon")
    status, out, err = store("prune", "--before", "2027-01-01", "--yes")
    assert status == 0 and damaged.exists() and undated.exists() and out == "nothing is that old\n"
    assert len(err.splitlines()) == 2 and all(line.endswith(": kept") for line in err.splitlines())


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["prune"], "--before DATE or --keep N"),
        (["prune", "--keep", "1", "--before", "2026-01-01"], "one of the two"),
        (["prune", "--keep", "0"], "at least 1"),
        (["prune", "--before", "soon"], "a day such as"),
        (["verify", "--yes"], "--yes goes with prune alone"),
        (["compact", "--keep", "3"], "--keep goes with prune alone"),
        (["tidy"], "invalid choice"),
    ],
)
def test_wrong_use_is_one_line_and_deletes_nothing(store, typed, said):
    make.record(store.results, make.measurement(), **_day(1))
    status, _, err = store(*typed)
    assert status == 2 and said in err and len(err.splitlines()) == 1 and find_records(store.results)


def test_without_results_it_says_what_to_do(store):
    store.results.rmdir()
    status, _, err = store("verify")
    assert status == 2 and "no results folder" in err
