"""A run: its records, what it refuses, how it goes on. The worker is replaced; tests/measure has the real one."""

from __future__ import annotations

import argparse
import errno
import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from groundspeed import session
from groundspeed.errors import UserError
from groundspeed.measure.first_call_subset import Wanted
from groundspeed.measure.first_calls import FirstCalls
from groundspeed.measure.lane import CPU, Lane
from groundspeed.measure.neighbours import NOBODY, Neighbours
from groundspeed.measure.supervisor import Outcome
from groundspeed.measure.workers import Workers
from groundspeed.operator import Case
from groundspeed.records import Environment, Measurement, find_records, read_record
from groundspeed.selection import Selection
from groundspeed.tree import Tree
from tests.core.scratch import ADD, make_tree
from tests.paths import ROOT

ENVIRONMENT = Environment("cpu", "A CPU", "3.11.2", "Linux 6")


@pytest.fixture
def project(tmp_path):
    make_tree(tmp_path / "impls", {"double": {"torch_add": ADD}, "triple": {"torch_add": ADD}})
    return tmp_path


@pytest.fixture
def jobs(monkeypatch):
    """Every job handed to a worker; the worker measures all but ``torch_add``, which it takes down with itself."""
    seen = []

    def supervise(job, environment, progress, workers):
        seen.append(job)
        rows = {
            (number, name): Measurement(name, case.dtype, case.dims, "ok", "case", "implementation")
            for number, case in enumerate(job.case_list())
            for name in job.implementations
            if name != "torch_add"
        }
        if "torch_add" in job.implementations:
            case = job.case_list()[0]
            failed = Measurement("torch_add", case.dtype, case.dims, "failed", failure="crash", reason="it fell")
            rows[0, "torch_add"] = failed
        return Outcome(rows, ENVIRONMENT, seconds={"time": 0.12345})

    monkeypatch.setattr(session, "supervise", supervise)
    return seen


def open_run(project: Path, selection: Selection | None = None, **options: object) -> session.Run:
    return session.open_run(project, project / "results", selection or Selection(), device="cpu", **options)


def test_a_record_holds_a_row_for_each_implementation_and_case_with_digests_and_reasons(project, jobs):
    run = open_run(project)
    record = read_record(session.measure_operator(run, "double"))
    assert [(row.implementation, row.shape["N"], row.status) for row in record.measurements] == [
        ("torch_eager", 64, "ok"),
        ("torch_add", 64, "failed"),
        ("torch_eager", 4096, "ok"),
        ("torch_add", 4096, "failed"),
    ]
    fell, never = record.measurements[1], record.measurements[3]
    assert (fell.reason, never.reason) == ("it fell", "the worker ended before its turn")
    tree = Tree(project / "impls")
    for row in (fell, never):
        assert row.case_digest == tree.case_digest("double", Case.of(row.dtype, row.shape))
        add = tree.implementation("double", "torch_add")
        assert row.implementation_digest == tree.implementation_digest(add)
    header = record.header
    assert (header.run_id, header.operator, header.tier, header.machine) == (run.run_id, "double", "full", run.machine)
    assert header.ideas == {"torch_eager": "One multiplication", "torch_add": "An addition instead"}
    assert record.footer.seconds["time"] == 0.123 and record.footer.seconds["total"] >= 0


@pytest.mark.parametrize(
    ("selection", "metered"),
    [
        (Selection(tier="full"), "largest"),
        (Selection(tier="core"), ""),
        (Selection(tier="core", energy=True), "all"),
        (Selection(tier="full", energy=True), "all"),
    ],
)
def test_the_full_tier_meters_energy_in_the_largest_case_of_tier_core(jobs, tmp_path, selection, metered):
    run = session.open_run(ROOT, tmp_path, selection, device="cpu")
    session.measure_operator(run, "softmax")
    (job,) = jobs
    cases = job.case_list()
    labels = {"largest": ["float32 M=8192,N=8192"], "": [], "all": [case.label for case in cases]}[metered]
    assert [cases[number].label for number in job.energy] == labels


def test_a_run_goes_on_where_it_was_and_a_new_one_measures_everything(project, jobs):
    run = open_run(project)
    path = session.measure_operator(run, "double")
    before = path.read_bytes()
    again = open_run(project, run_id=run.run_id)
    for operator in again.tree.operators():
        session.measure_operator(again, operator)
    assert path.read_bytes() == before
    assert [job.operator for job in jobs] == ["double", "triple"]
    fresh = open_run(project)
    assert fresh.run_id != run.run_id
    session.measure_operator(fresh, "double")
    assert len(find_records(project / "results")) == 3


@pytest.mark.parametrize("run_id", ["20260101T000000Z-none-ffff", "..", ".", "", "a/b"])
def test_a_run_that_is_not_there_cannot_go_on(project, run_id):
    (project / "results").mkdir()
    with pytest.raises(UserError, match="run without --resume"):
        open_run(project, run_id=run_id)


def test_a_run_of_another_commit_cannot_go_on(project, jobs):
    def commit(message: str) -> None:
        (project / "note").write_text(message)
        for words in (("add", "-A"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", message)):
            subprocess.run(["git", "-C", str(project), *words], check=True)

    subprocess.run(["git", "init", "-q", str(project)], check=True)
    (project / ".gitignore").write_text("results\n")
    commit("one")
    run = open_run(project)
    assert open_run(project).commit.dirty is False
    session.measure_operator(run, "double")
    assert open_run(project, run_id=run.run_id).commit == run.commit
    (project / "impls" / "double" / "torch_new.py").write_text(ADD)
    assert open_run(project).commit.dirty is True
    commit("two")
    with pytest.raises(UserError, match=f"run {run.run_id} is of {run.commit.hash[:10]}, checked out is "):
        open_run(project, run_id=run.run_id)


def test_another_folder_is_measured_under_todays_specs_as_the_commit_said(project, jobs, tmp_path):
    past = make_tree(tmp_path / "past", {"double": {"spec": "SPEC = 3\n", "torch_old": ADD}})
    run = open_run(project, impls=past, commit="0123456789abcdef0123456789abcdef01234567")
    record = read_record(session.measure_operator(run, "double"))
    assert {row.implementation for row in record.measurements} == {"torch_eager", "torch_old"}
    assert record.header.commit == "0123456789abcdef0123456789abcdef01234567"
    assert jobs[0].tree == str(past.resolve()) and jobs[0].specs == str((project / "impls").resolve())


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        (Selection(), "--only double --tier full"),
        (Selection(implementations=("torch_eager", "torch_add")), "--only double --tier full"),
        (Selection(implementations=("torch_eager", "torch_eager")), "--only double/torch_eager --tier full"),
        (Selection(implementations=("*_add",), tier="small"), "--only 'double/*_add' --tier small"),
        (Selection(dtypes=("float32",)), "--only double --tier full --dtype float32"),
    ],
)
def test_the_command_in_the_header_reproduces_the_sweep(project, jobs, selection, words):
    record = read_record(session.measure_operator(open_run(project, selection), "double"))
    assert record.header.command == f"groundspeed run {words}"
    from groundspeed.commands import run

    parser = argparse.ArgumentParser()
    run.add_arguments(parser)
    assert parser.parse_args(shlex.split(record.header.command)[2:]).tier == selection.tier


def test_the_command_in_the_header_asks_for_first_calls_where_the_run_did(project, jobs, monkeypatch):
    monkeypatch.setattr(session, "cold_and_warm", lambda *_: FirstCalls())
    run = open_run(project, first_call=(Wanted("double", "*"),))
    record = read_record(session.measure_operator(run, "double"))
    assert record.header.command == "groundspeed run --only double --tier full --first-call cold"


@pytest.mark.parametrize(("number", "advice"), [(errno.ENOSPC, "make room and"), (errno.EACCES, "mend that and")])
def test_a_record_that_cannot_be_written_is_one_line_and_the_rerun_completes(
    project, jobs, monkeypatch, number, advice
):
    run = replace(open_run(project), go_on="groundspeed run --only double --resume x")
    session.measure_operator(run, "triple")

    def full(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(UserError) as caught:
            session.measure_operator(run, "double")
    said = str(caught.value)
    assert said.startswith("double: ") and "\n" not in said
    assert f"cannot be written: {os.strerror(number)}; {advice} type: groundspeed run --only double --resume x" in said
    assert [path.name for path in find_records(project / "results")] == ["triple.jsonl.gz"]
    again = open_run(project, run_id=run.run_id)
    assert read_record(session.measure_operator(again, "double")).footer.end == 4


def test_an_operator_of_which_no_case_is_selected_is_not_measured_and_leaves_no_record(project, jobs):
    run = open_run(project, Selection(dtypes=("int32",)))
    with pytest.raises(UserError, match="double: none of its cases is selected"):
        session.measure_operator(run, "double")
    assert not jobs and not find_records(project / "results")


def test_a_worker_that_never_began_is_one_line(project, monkeypatch):
    problem = "double: the worker ended in start: no torch"
    monkeypatch.setattr(session, "supervise", lambda *_, **__: Outcome(problem=problem))
    with pytest.raises(UserError, match=r"^double: the worker ended in start: no torch$"):
        session.measure_operator(open_run(project), "double")
    assert find_records(project / "results") == []


class Watching(Lane):
    """A lane on which others are seen, as told."""

    def __init__(self, *seen: Neighbours) -> None:
        super().__init__(CPU, Workers({"A": "1"}, nursery=False))
        object.__setattr__(self, "seen", list(seen))

    def before(self, tell=lambda what: None):
        tell("others")
        return self.seen[0]

    def after(self):
        return self.seen[-1]


def rows_beside(project, before: Neighbours, after: Neighbours):
    said: list[str] = []
    path = session.measure_operator(open_run(project), "double", lane=Watching(before, after), say=said.append)
    assert said == ["others"]
    record = read_record(path)
    eager, add = record.measurements[:2]
    assert add.status == "failed" and not add.unstable and not add.notes
    return record.header.environment.other_processes, eager


def test_a_gpu_that_others_worked_on_makes_its_times_doubtful(project, jobs):
    count, row = rows_beside(project, NOBODY, Neighbours(2, 1 << 30, 45))
    said = "the GPU was not ours alone: 2 other processes hold 1.0 GiB, and it is 45 % busy"
    assert count == 2 and row.unstable == said and row.status == "ok"
    count, row = rows_beside(project, Neighbours(0, 0, 99), NOBODY)
    assert count == 0 and "99 % busy" in row.unstable


def test_a_gpu_that_others_only_sat_on_is_noted(project, jobs):
    count, row = rows_beside(project, Neighbours(1, 1 << 30, 0), NOBODY)
    assert count == 1 and row.unstable == ""
    assert row.notes == ["the GPU was not ours alone: 1 other process holds 1.0 GiB, idle"]
    assert rows_beside(project, NOBODY, NOBODY)[1].notes == []


def test_results_of_chosen_gpus_are_filed_under_the_name_given(project, jobs):
    run = open_run(project, machine="nvidia-h200")
    assert run.machine == "nvidia-h200"
    assert session.measure_operator(run, "double").parts[-4] == "nvidia-h200"


def test_what_is_selected_must_be_there(project, jobs):
    with pytest.raises(UserError, match="unknown operator 'dubble'"):
        open_run(project, Selection(operators=("dubble",)))
    (project / "impls" / "triple" / "torch_more.py").write_text(ADD)
    run = open_run(project, Selection(implementations=("torch_more",)))
    with pytest.raises(UserError, match="double: none of its implementations is selected"):
        session.measure_operator(run, "double")
    assert jobs == []
