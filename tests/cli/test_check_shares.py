"""How a check is shared out: with workers that only say what they were given."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from groundspeed import checks, session
from groundspeed.measure.protocol import Job
from groundspeed.measure.supervisor import Outcome
from groundspeed.measure.workers import Workers
from groundspeed.project import find_project
from groundspeed.records import Environment, Measurement
from groundspeed.selection import Selection

OPERATORS = ("rope", "softmax", "add")


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Job, dict[str, str]]]]:
    given: list[tuple[Job, dict[str, str]]] = []
    lock = threading.Lock()

    def pretend(job: Job, environment: dict[str, str], progress: object, workers: Workers) -> Outcome:
        assert workers.environment is environment
        with lock:
            given.append((job, environment))
        rows = {
            (number, name): Measurement(name, dtype, dict(shape), "ok")
            for number, (dtype, shape) in enumerate(job.cases)
            for name in job.implementations
        }
        return Outcome(rows=rows, environment=Environment("cuda", "A GPU", "3.12", "Linux 6"))

    monkeypatch.setattr(checks, "supervise", pretend)
    monkeypatch.setattr(checks, "usable_cores", lambda: 16)
    yield given


def runs(device: str, operators: tuple[str, ...] = OPERATORS) -> list[session.Run]:
    project = find_project(None)
    opened = replace(session.open_run(project.root, project.results, Selection()), device=device)
    return [replace(opened, selection=Selection((name,))) for name in operators]


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_every_pair_is_judged_once_and_answered_in_order(jobs: list[tuple[Job, dict[str, str]]], device: str):
    asked = runs(device)
    found = {one.operator: one for one in checks.check_operators(asked)}
    assert set(found) == set(OPERATORS)
    tree = asked[0].tree
    for operator, one in found.items():
        assert [(row.implementation, row.dtype, row.shape) for row in one.rows] == [
            (implementation.name, case.dtype, dict(case.shape))
            for implementation in tree.implementations(operator)
            for case in tree.spec(operator).check_cases
        ]
    assert sum(len(job.cases) * len(job.implementations) for job, _ in jobs) == sum(
        len(one.rows) for one in found.values()
    )


def test_on_a_gpu_compiled_ones_are_spread_and_the_others_kept_together(jobs: list[tuple[Job, dict[str, str]]]):
    list(checks.check_operators(runs("cuda")))
    for operator in OPERATORS:
        compiled = [job for job, _ in jobs if job.operator == operator and job.implementations == ("torch_compile",)]
        others = [job for job, _ in jobs if job.operator == operator and "torch_compile" not in job.implementations]
        assert len(compiled) > len(others) >= 1
    assert len(jobs) < 4 * 12, "each share pays for the start of a worker"


def test_without_a_gpu_triton_is_interpreted_apart(jobs: list[tuple[Job, dict[str, str]]]):
    list(checks.check_operators(runs("cpu")))
    for job, environment in jobs:
        triton = {name.startswith("triton_") for name in job.implementations}
        assert triton == {environment.get("TRITON_INTERPRET") == "1"}


def test_a_worker_that_cannot_start_is_the_problem_of_its_operator(
    jobs: list[tuple[Job, dict[str, str]]], monkeypatch: pytest.MonkeyPatch
):
    honest = checks.supervise

    def fail(job: Job, environment: dict[str, str], progress: object, workers: Workers) -> Outcome:
        if job.operator == "add":
            return Outcome(problem="add: no worker")
        return honest(job, environment, progress, workers=workers)

    monkeypatch.setattr(checks, "supervise", fail)
    found = {one.operator: one for one in checks.check_operators(runs("cuda"))}
    assert found["add"].problem == "add: no worker" and not found["add"].rows
    assert found["rope"].rows and not found["rope"].problem


def test_when_it_is_given_up_workers_at_work_are_ended(
    jobs: list[tuple[Job, dict[str, str]]], monkeypatch: pytest.MonkeyPatch
):
    honest = checks.supervise

    def hang(job: Job, environment: dict[str, str], progress: object, workers: Workers) -> Outcome:
        if job.operator != "add":
            return honest(job, environment, progress, workers=workers)
        while True:
            workers.check()
            time.sleep(0.01)

    monkeypatch.setattr(checks, "supervise", hang)
    found = checks.check_operators(runs("cuda"))
    assert next(found).rows
    found.close()  # comes back: the thread that waits for the worker of `add` has ended
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]
