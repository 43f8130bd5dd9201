"""groundspeed import --commit: what was measured, for files that do not say."""

from __future__ import annotations

import subprocess

import pytest

from dashboard.store import open_store
from groundspeed.cli import main
from groundspeed.records import find_records, read_record
from tests.importing.files import benchmark, nvbench_document, pytest_document, pytest_test, state, timed, write


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository of two commits, in which one stands; ``hashes`` are theirs, oldest first."""
    folder = tmp_path / "code"
    folder.mkdir()
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]

    def git(*typed):
        return subprocess.run(["git", *who, *typed], cwd=folder, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    for message in ("one", "two"):
        git("commit", "-q", "--allow-empty", "-m", message, "--date", "2026-01-02T03:04:05+00:00")
    folder_hashes = git("rev-list", "--reverse", "HEAD").split()
    monkeypatch.chdir(folder)
    return folder_hashes


@pytest.fixture
def nvbench_file(tmp_path):
    return write(tmp_path / "nv.json", nvbench_document(benchmark("copy", state({"n": 8}, timed(1e-5)))))


def _import(tmp_path, capsys, *typed):
    capsys.readouterr()
    status = main(["import", *map(str, typed), "--results", str(tmp_path / "results")])
    return status, *capsys.readouterr()


def _headers(tmp_path):
    return [read_record(path).header for path in find_records(tmp_path / "results")]


def test_a_revision_of_the_checkout_is_the_commit(repository, nvbench_file, tmp_path, capsys):
    status, out, err = _import(tmp_path, capsys, nvbench_file, "--commit", "HEAD~1")
    assert status == 0 and not err and f"-{repository[0][:8]}-" in out
    (header,) = _headers(tmp_path)
    assert header.commit == repository[0] and header.commit_time and not header.dirty
    (row,) = open_store(tmp_path / "results").snapshot.measurements.to_dicts()
    assert row["commit"] == repository[0] and row["commit_time"] is not None


def test_two_files_of_two_commits_are_two_points_of_a_history(repository, nvbench_file, tmp_path, capsys):
    second = write(tmp_path / "second.json", nvbench_document(benchmark("copy", state({"n": 8}, timed(2e-5)))))
    assert _import(tmp_path, capsys, nvbench_file, "--commit", repository[0])[0] == 0
    assert _import(tmp_path, capsys, second, "--commit", "HEAD")[0] == 0
    assert {header.commit for header in _headers(tmp_path)} == set(repository)
    assert open_store(tmp_path / "results").snapshot.latest.height == 1


def test_importing_again_under_another_commit_is_refused(repository, nvbench_file, tmp_path, capsys):
    """One measurement is of one commit: filed under two it would count twice."""
    assert _import(tmp_path, capsys, nvbench_file)[0] == 0
    status, out, err = _import(tmp_path, capsys, nvbench_file, "--commit", "HEAD")
    assert status == 2 and not out and "imported before, as of no commit: delete " in err
    (header,) = _headers(tmp_path)
    assert header.commit == ""
    for path in find_records(tmp_path / "results"):
        path.unlink()
        path.parent.rmdir()
    assert _import(tmp_path, capsys, nvbench_file, "--commit", "HEAD")[0] == 0
    assert "nothing added" in _import(tmp_path, capsys, nvbench_file, "--commit", "HEAD")[1]
    assert "nothing added" in _import(tmp_path, capsys, nvbench_file)[1]


def test_a_file_that_names_its_commit_keeps_it(repository, tmp_path, capsys):
    tests = write(tmp_path / "tests.json", pytest_document(pytest_test("test_sum")))
    status, _, err = _import(tmp_path, capsys, tests, "--commit", "HEAD")
    assert status == 2 and f"says that it is of commit 01234567, not {repository[1][:8]}: leave --commit out" in err
    assert not _headers(tmp_path)


def test_what_is_no_revision_is_one_line(repository, nvbench_file, tmp_path, capsys):
    status, _, err = _import(tmp_path, capsys, nvbench_file, "--commit", "no-such")
    assert status == 2 and len(err.splitlines()) == 1 and "--commit no-such: git knows no such revision" in err
    assert _import(tmp_path, capsys, nvbench_file, "--commit", "f" * 40)[0] == 0
    (header,) = _headers(tmp_path)
    assert (header.commit, header.commit_time) == ("f" * 40, ""), "a commit of another repository"
