"""One process measures at a time, nothing starts meanwhile, and one that dies takes nothing else with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groundspeed.calibrate.processes import Collected, run_processes
from groundspeed.calibrate.protocol import Task
from groundspeed.measure.process import start_worker, worker_environment


def tasks(count: int, *peers: str) -> list[Task]:
    return [Task("cpu", number, ("p",), peers, 3) for number in range(count)]


@pytest.fixture
def fake(tmp_path):
    """Runs tasks in fake processes; ``faults`` maps a process's number to the step at which it dies."""
    log = tmp_path / "log"
    log.touch()

    def run(asked: list[Task], faults: dict[int, str] | None = None) -> list[Collected]:
        variables = {"FAKE_LOG": str(log), "FAKE_FAULTS": json.dumps(faults or {})}
        environment = worker_environment(variables)
        return list(run_processes(asked, lambda task: start_worker(environment, "tests.calibrate.fake_child")))

    run.log = log  # type: ignore[attr-defined]
    return run


def intervals(log: Path, begin: str, end: str) -> list[tuple[int, float, float]]:
    """(process, begin, end) of everything of a kind, from what the fakes wrote down."""
    opened: dict[int, float] = {}
    found = []
    for what, process, moment in sorted(map(json.loads, log.read_text().splitlines()), key=lambda line: line[2]):
        if what == begin:
            opened[process] = moment
        elif what == end:
            found.append((process, opened.pop(process), moment))
    return found


def test_no_process_starts_or_measures_while_another_measures(fake):
    told = fake(tasks(4, "do_bench"))
    assert [len(one.readings) for one in told] == [2] * 4
    assert [[seen.process for seen in one.clocked] for one in told] == [[0], [1], [2], [3]]
    measuring = intervals(fake.log, "measuring", "idle")
    starting = intervals(fake.log, "starting", "ready")
    assert len(measuring) == 8 and len(starting) == 4
    for process, begin, end in measuring:
        for other, first, last in [*measuring, *starting]:
            assert other == process or last <= begin or first >= end, "two at once"


def test_the_next_process_starts_while_one_loads(fake):
    fake(tasks(3))
    starting = {process: begin for process, begin, _ in intervals(fake.log, "starting", "ready")}
    ours = [(process, begin) for process, begin, _ in intervals(fake.log, "measuring", "idle")]
    for process in (1, 2):
        before = [begin for number, begin in ours if number == process - 1]
        assert before[0] < starting[process] < before[1], "it started too late to save time, or too early"


def test_what_each_told_is_kept_apart_and_adds_up(fake):
    whole = Collected()
    for one in fake(tasks(2, "nvbench")):
        whole.add(one)
    assert [(one.method, one.process) for one in whole.readings] == [
        ("nvbench", 0), ("clock", 0), ("nvbench", 1), ("clock", 1),
    ]  # fmt: skip
    assert whole.timer == "clock" and whole.environment.device_name == "fake"
    assert whole.phases == {"probes": 1.0} and whole.missing == []


def test_a_peer_that_kills_its_process_is_left_out_and_the_process_is_run_again(fake):
    told = fake(tasks(3, "nvbench", "do_bench"), {0: "nvbench"})
    assert [[one.method for one in each.readings] for each in told] == [["do_bench", "clock"]] * 3
    (reason,) = {one.reason for each in told for one in each.missing}
    assert reason == "killed its process: it ended with status 7: dying at nvbench"


@pytest.mark.parametrize("step", ["start", "load", "clock"])
@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_process_that_dies_by_itself_is_named_and_the_others_go_on(fake, step, victim):
    told = fake(tasks(3), {victim: step})
    assert [len(one.readings) for one in told] == [0 if number == victim else 1 for number in range(3)]
    (missing,) = told[victim].missing
    assert missing.process == victim
    assert missing.reason == f"the process was lost: it ended with status 7: dying at {step}"
    assert not any(one.missing for number, one in enumerate(told) if number != victim)


def test_nobody_is_left_running_when_the_caller_stops(fake, tmp_path):
    environment = worker_environment({"FAKE_LOG": str(fake.log)})
    started = []

    def start(task):
        started.append(start_worker(environment, "tests.calibrate.fake_child"))
        return started[-1]

    running = run_processes(tasks(3), start)
    next(running)
    running.close()
    assert len(started) == 2 and all(worker.process.returncode is not None for worker in started)
