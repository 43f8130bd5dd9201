"""groundspeed import: once, whole or not at all, and read by every command."""

from __future__ import annotations

import hashlib
import os

import pytest

from dashboard.store import open_store
from groundspeed.cli import main
from groundspeed.importing import filing
from groundspeed.records import find_records, read_record, write_record
from tests.importing.files import (
    SECONDS,
    benchmark,
    nvbench_document,
    pytest_document,
    pytest_test,
    state,
    timed,
    write,
)


@pytest.fixture
def place(tmp_path, capsys):
    class Place:
        results = tmp_path / "results"

        def command(self, *typed):
            capsys.readouterr()
            status = main(["import", *map(str, typed), "--results", str(self.results)])
            return status, *capsys.readouterr()

        def contents(self):
            files = sorted(path for path in self.results.rglob("*") if path.is_file())
            return {
                str(path.relative_to(self.results)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
            }

    return Place()


@pytest.fixture
def tests_file(tmp_path):
    return write(tmp_path / "tests.json", pytest_document(pytest_test("test_sum", {"n": 3}), pytest_test("test_dot")))


@pytest.fixture
def nvbench_file(tmp_path):
    return write(tmp_path / "nv.json", nvbench_document(benchmark("copy", state({"n": 8}, timed(1e-5)))))


def test_records_appear_and_the_line_says_what_to_type(place, tests_file, capsys):
    status, out, err = place.command(tests_file)
    assert status == 0 and not err
    assert "2 results of test_sum, test_dot; type: groundspeed table --machine cpu-amd-epyc-9474f" in out
    run_id = out.partition("--run ")[2].split()[0]
    assert run_id.startswith("20260102T090000Z-01234567-")
    records = [read_record(path) for path in find_records(place.results)]
    assert {record.header.operator for record in records} == {"test_sum", "test_dot"}
    assert {record.header.run_id for record in records} == {run_id}
    typed = out.partition("type: groundspeed ")[2].split()
    assert main([*typed, "--results", str(place.results)]) == 0
    assert "1.4" in capsys.readouterr().out


def test_importing_again_adds_nothing_and_changes_nothing(place, tests_file, nvbench_file):
    place.command(tests_file, nvbench_file)
    before = place.contents()
    os.utime(nvbench_file, (1, 1))  # its run is named by this time: the content alone must decide
    status, out, _ = place.command(tests_file, nvbench_file)
    assert status == 0 and place.contents() == before
    assert out.count("imported before, nothing added") == 2


def test_a_copy_under_another_name_and_for_another_machine_is_the_same_file(place, tests_file, tmp_path):
    place.command(tests_file)
    before = place.contents()
    copy = tmp_path / "copy.json"
    copy.write_bytes(tests_file.read_bytes())
    _, out, _ = place.command(copy, "--machine", "elsewhere")
    assert "imported before" in out and place.contents() == before


def test_bad_files_are_a_line_each_and_the_others_are_imported(place, tests_file, tmp_path):
    no_json, none, foreign = tmp_path / "no.json", tmp_path / "none.json", tmp_path / "asv.json"
    no_json.write_text("{")
    write(none, pytest_document())
    write(foreign, {"commit_hash": "x", "results": {}})
    status, out, err = place.command(no_json, tmp_path / "gone.json", none, foreign, tests_file)
    lines = err.splitlines()
    assert status == 2 and len(lines) == 4 and all(line.startswith("groundspeed: ") for line in lines)
    assert "no.json: is no JSON" in lines[0] and "gone.json cannot be read: No such file" in lines[1]
    assert "none.json: holds no benchmarks" in lines[2] and "asv.json: is asv's, which needs no import" in lines[3]
    assert "2 results" in out and len(place.contents()) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "is no JSON: line 1, column 1: "),
        (b'{"a": "\xff"}', "is no JSON: byte 7 is no text"),
        (b"null", "holds null, expected an object"),
        (b"[1]", "holds an array, expected an object"),
        (b'{"a": ' * 100_000, "is nested too deeply"),
        (b'{"meta": [1], "benchmarks": 3}', "is no result file of pytest-benchmark or NVBench"),
        (
            b'{"machine_info": {}, "benchmarks": [{"name": "t"}]}',
            "is no whole file of pytest-benchmark: benchmarks[0]: object missing required field 'stats'",
        ),
        (
            b'{"machine_info": {}, "benchmarks": [{"name": "t", "stats": null}]}',
            "benchmarks[0].stats: expected 'object', got 'null'",
        ),
        (
            b'{"machine_info": {}, "benchmarks": [{"name": "t", "stats": {"median": 1}}]}',
            "datetime: expected a time in ISO 8601, got ''",
        ),
        (
            b'{"devices": [], "benchmarks": [{"name": "t", "states": [7]}]}',
            "is no whole file of NVBench: benchmarks[0].states[0]: expected 'object', got 'int'",
        ),
        (b'{"devices": [], "meta": {"version": 3}, "benchmarks": [1]}', "meta.version: expected 'object"),
        (b'{"devices": [], "benchmarks": []}', "holds no benchmarks"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_words(place, tmp_path, text, said):
    bad = tmp_path / "bad.json"
    bad.write_bytes(text)
    status, out, err = place.command(bad)
    assert status == 2 and not out and err.count("\n") == 1
    assert err.startswith(f"groundspeed: {bad}: ") and said in err, err
    assert not any(word in err for word in ("Error", "NoneType", "codec", "recursion"))


def test_a_value_that_no_record_can_hold_leaves_nothing_behind(place, tmp_path):
    document = pytest_document(pytest_test("test_sum"), pytest_test("test_dot", stats={"median": 1, "data": [1e-6]}))
    text = write(tmp_path / "t.json", document).read_text()
    (tmp_path / "t.json").write_text(text.replace('"data": [1e-06]', '"data": [Infinity]'))
    status, _, err = place.command(tmp_path / "t.json")
    assert status == 2 and "not a finite number" in err and not place.contents()


def test_an_import_that_is_interrupted_leaves_nothing_that_is_read(place, tests_file, monkeypatch):
    wrote = []

    def once(path, record):
        if wrote:
            raise KeyboardInterrupt
        wrote.append(path)
        path.parent.mkdir(parents=True)
        path.write_bytes(b"")

    monkeypatch.setattr(filing, "write_record", once)
    assert place.command(tests_file)[0] == 130
    assert not find_records(place.results)
    monkeypatch.undo()
    place.command(tests_file)
    assert len(find_records(place.results)) == 2


def test_two_that_import_one_file_at_once_add_it_once(place, tests_file, monkeypatch):
    """The other one finishes between our look and our writing."""

    def after_the_other(path, record):
        monkeypatch.undo()
        filing.import_file(tests_file, place.results)
        write_record(path, record)

    monkeypatch.setattr(filing, "write_record", after_the_other)
    status, out, _ = place.command(tests_file)
    assert status == 0 and "imported before" in out and len(find_records(place.results)) == 2


def test_the_machine_can_be_named_and_must_be_where_the_file_does_not(place, tests_file, tmp_path):
    test = pytest_test("test_op", extra_info={"timer": "cupti"}, options={"timer": "groundspeed.device_time"})
    bridge = write(tmp_path / "bridge.json", pytest_document(test))
    status, _, err = place.command(bridge)
    assert status == 2 and "pass --machine NAME" in err
    assert place.command(bridge, tests_file, "--machine", "nvidia-h200")[0] == 0
    assert {path.split("/")[0] for path in place.contents()} == {"nvidia-h200"}


@pytest.mark.parametrize("name", ["../elsewhere", "a b", ".hidden", "x/y"])
def test_a_machine_that_is_no_folders_name_is_refused(place, tests_file, name):
    status, _, err = place.command(tests_file, "--machine", name)
    assert status == 2 and "expected letters" in err and not place.contents()


def test_results_of_two_gpus_are_not_filed_under_one_name(place, tmp_path):
    bench = benchmark("copy", state({}, timed(1e-5), device=0), state({}, timed(2e-5), device=1))
    path = write(tmp_path / "two.json", nvbench_document(bench, devices=("NVIDIA H200", "NVIDIA L4")))
    status, _, err = place.command(path, "--machine", "both")
    assert status == 2 and "holds results of nvidia-h200, nvidia-l4" in err
    assert place.command(path)[0] == 0
    assert {path.split("/")[0] for path in place.contents()} == {"nvidia-h200", "nvidia-l4"}


def test_the_dashboard_and_compare_read_what_was_imported(place, tests_file, tmp_path, capsys):
    slower = pytest_test("test_sum", {"n": 3}, stats={"median": 4.2e-6, "data": [3 * x for x in SECONDS]})
    later = write(tmp_path / "later.json", pytest_document(slower, datetime="2026-02-02T09:00:00+00:00"))
    place.command(tests_file, later)
    shown = open_store(place.results).snapshot
    rows = shown.measurements.to_dicts()
    assert shown.problems.is_empty() and {row["operator"] for row in rows} == {"test_sum", "test_dot"}
    assert sorted(row["call"] for row in rows) == pytest.approx([1.4e-6, 1.4e-6, 4.2e-6])
    runs = sorted(path.parent.name for path in find_records(place.results))
    machine = "cpu-amd-epyc-9474f-48-core-processor"
    main(["compare", f"{machine}:{runs[0]}", f"{machine}:{runs[-1]}", "--results", str(place.results)])
    assert "regressed" in capsys.readouterr().out


def test_readmes_table_does_not_show_imported_results(place, nvbench_file):
    """It shows what tiers core and full measured; imported cases are of no tier."""
    place.command(nvbench_file)
    (record,) = (read_record(path) for path in find_records(place.results))
    assert record.header.machine == "nvidia-h200" and record.header.tier == "imported"
