"""Any one process killed at any moment: five seeded trials here, fifty by `make soak`."""

from __future__ import annotations

import signal

import pytest

from groundspeed.fleet import kill_trials
from groundspeed.fleet.ledger import Ledger
from groundspeed.fleet.local_cluster import descendants
from tests.fleet.conftest import needs_ray
from tests.fleet.test_parts import record, store
from tests.processes import is_alive, wait_for

SEED = 12


@needs_ray
@pytest.mark.slow
def test_killing_any_one_process_loses_and_duplicates_nothing():
    said = []
    trials = kill_trials.run_trials(5, SEED, said.append, nodes=2)
    assert not [trial for trial in trials if trial.faults], "\n".join(said)
    assert all(trial.killed for trial in trials), "\n".join(said)
    assert len({trial.kind for trial in trials}) == 5


@needs_ray
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_is_one_line_and_leaves_nothing_running(driver, number):
    """Ray has a handler of its own for the second."""
    trials = driver("-m", "groundspeed.fleet.kill_trials", "--trials", "2")
    mark = kill_trials.KINDS["driver"]
    wait_for(lambda: any(mark in line for line in descendants(trials.process.pid).values()), 90)
    running = descendants(trials.process.pid)
    trials.process.send_signal(number)
    assert trials.end() == 130
    own = [line for line in trials.said.splitlines() if line and "INFO" not in line]  # Ray's, of another Ray here
    assert own == ["groundspeed: interrupted"]
    wait_for(lambda: not any(map(is_alive, running)))


@pytest.mark.parametrize("fault", ["lost", "torn", "another's", "too many", "twice"])
def test_the_trials_see_what_they_look_for(tmp_path, fault):
    ledger = Ledger(tmp_path, "trial", "run", "", "")
    for number in range(kill_trials.OPERATORS):
        name = f"op_{number:03}"
        store(tmp_path, record(operator=name, machine="synthetic", run_id="trial"))
        ledger.add("synthetic", name, "p", 1.0, "kept")
    assert kill_trials.faults_in(tmp_path) == []
    folder = tmp_path / "synthetic" / "records" / "trial"
    first, second = folder / "op_000.jsonl.gz", folder / "op_001.jsonl.gz"
    if fault == "lost":
        first.unlink()
    elif fault == "torn":
        first.write_bytes(first.read_bytes()[:-9])
    elif fault == "another's":
        first.write_bytes(second.read_bytes())
    elif fault == "too many":
        store(tmp_path, record(operator="op_999", machine="synthetic", run_id="trial"))
    else:
        ledger.add("synthetic", "op_000", "q", 1.0, "kept")
    assert kill_trials.faults_in(tmp_path)
