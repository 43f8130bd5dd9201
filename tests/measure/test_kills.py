"""kill -9 of the worker and of the supervisor: nothing else is lost, nothing is left running, the rerun completes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from groundspeed import session
from groundspeed.measure.process import worker_environment
from groundspeed.measure.supervisor import Progress, supervise
from groundspeed.measure.workers import Workers
from groundspeed.records import find_records, read_record
from groundspeed.selection import Selection
from tests.core.scratch import ADD, calls, job, make_tree
from tests.measure.test_process import gone

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


def children(pid: int, module: bytes = b"groundspeed.measure.worker") -> list[int]:
    """Running processes of a module that a process started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and module in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while it was looked at
    return found


NURSERY = b"groundspeed.measure.nursery"


def workers_of(pid: int) -> list[int]:
    """Workers that a process started, or that its nurseries forked."""
    return children(pid) + [worker for one in children(pid, NURSERY) for worker in children(one, NURSERY)]


def kill_workers() -> None:
    for pid in workers_of(os.getpid()):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture(params=["forked", "started"])
def sources(request):
    """Where workers come from: a nursery of the test's own, or nowhere in particular."""
    if request.param == "started":
        yield None
        return
    with Workers(worker_environment({}), compiler=False) as own:
        yield own


def test_a_worker_killed_in_the_timed_rounds_costs_nothing_but_time(tmp_path, sources):
    root = make_tree(tmp_path, {"double": {"torch_add": ADD}})
    told: list[Progress] = []

    def kill_once(progress: Progress) -> None:
        if (
            progress.phase == "time"
            and progress.case == 1
            and not any(one.phase == "time" and one.case == 1 for one in told)
        ):
            kill_workers()
        told.append(progress)

    outcome = supervise(job(root), worker_environment({}), kill_once, workers=sources)
    assert {key: row.status for key, row in outcome.rows.items()} == {
        (case, name): "ok" for case in (0, 1) for name in ("torch_eager", "torch_add")
    }
    assert outcome.problem == "" and workers_of(os.getpid()) == []
    assert sources is None or sources.why_not == ""


def test_a_worker_killed_at_any_time_leaves_a_row_or_a_reason_for_everything(tmp_path, sources):
    root = make_tree(tmp_path, {"double": {"torch_add": ADD}})
    seed = random.randrange(1 << 30)
    after = random.Random(seed).uniform(0.0, 3.0)
    timer = threading.Timer(after, kill_workers)
    timer.start()
    outcome = supervise(job(root), worker_environment({}), lambda progress: None, workers=sources)
    timer.cancel()
    why = f"killed after {after:.3f} s: {outcome}"
    assert set(outcome.rows) == {(case, name) for case in (0, 1) for name in ("torch_eager", "torch_add")}, why
    for row in outcome.rows.values():
        assert row.status == "ok" or (row.failure == "oom" and "SIGKILL" in row.reason), why
    if outcome.problem:
        assert outcome.environment is None, why  # it was killed before it began, and that alone stops a sweep
    else:
        assert sum(name != "" for _, name in outcome.rows) == 4
        accused = {name for (_, name), row in outcome.rows.items() if row.status != "ok"}
        assert len(accused) <= 1, why
    # One that dies between the fork and its first word is held against the nursery.
    assert sources is None or sources.why_not == "" or "did not begin: the worker died of SIGKILL" in sources.why_not


@pytest.mark.parametrize("phase", ["time", "check"])
def test_a_nursery_killed_accuses_nobody_and_another_takes_its_place(tmp_path, phase):
    """In ``check`` one implementation has the floor, and would be the culprit had its worker died alone."""
    root = make_tree(tmp_path, {"double": {"torch_add": ADD}})
    others = set(children(os.getpid(), NURSERY))  # of other tests
    killed: list[int] = []

    def kill_nursery(progress: Progress) -> None:
        if progress.phase == phase and not killed:
            killed.extend(set(children(os.getpid(), NURSERY)) - others)
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    with Workers(worker_environment({}), compiler=False) as own:
        outcome = supervise(job(root), own.environment, kill_nursery, workers=own)
        assert len(killed) == 1 and own.why_not == ""
        assert {row.status for row in outcome.rows.values()} == {"ok"} and len(outcome.rows) == 4
        assert len(set(children(os.getpid(), NURSERY)) - others) == 1
    assert set(children(os.getpid(), NURSERY)) <= others


RUNNER = """
import sys
from pathlib import Path
from groundspeed import session
from groundspeed.selection import Selection

root = Path(sys.argv[1])
run = session.open_run(root, root / "results", Selection(), device="cpu")
print(run.run_id, flush=True)
for operator in run.tree.operators():
    session.measure_operator(run, operator, lambda p: print(operator, p.phase, p.implementation, flush=True))
"""


@pytest.fixture
def project(tmp_path):
    waits = calls(f"if Path({str(tmp_path / 'wait')!r}).exists(): time.sleep(3600)").replace(
        "import torch\n", "import torch\nfrom pathlib import Path\n"
    )
    make_tree(tmp_path / "impls", {"first": {}, "second": {"torch_wait": waits}})
    (tmp_path / "wait").touch()
    return tmp_path


def test_a_killed_supervisor_leaves_no_worker_and_the_run_goes_on(project):
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(project)],
        env=worker_environment({}),
        stdout=subprocess.PIPE,
        text=True,
    )
    run_id = runner.stdout.readline().strip()
    for line in runner.stdout:
        if line.split() == ["second", "prepare", "torch_wait"]:
            break
    workers = workers_of(runner.pid)
    assert len(workers) == 1
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    runner.stdout.close()
    assert gone(workers[0]), "the worker outlived its supervisor"

    kept = find_records(project / "results")
    assert [path.name for path in kept] == ["first.jsonl.gz"]
    before = kept[0].read_bytes()
    (project / "wait").unlink()
    again = session.open_run(project, project / "results", Selection(), device="cpu", run_id=run_id)
    for operator in again.tree.operators():
        session.measure_operator(again, operator)
    first, second = find_records(project / "results")
    assert first.read_bytes() == before and first.parent == second.parent
    rows = [(row.implementation, row.case_label, row.status) for row in read_record(second).measurements]
    assert rows == [
        (name, label, "ok") for label in ("float32 N=64", "float32 N=4096") for name in ("torch_eager", "torch_wait")
    ]
    assert sorted(os.listdir(first.parent)) == ["first.jsonl.gz", "second.jsonl.gz"]


def test_a_worker_whose_supervisor_is_already_gone_does_not_begin():
    """The parent's id is checked after the death signal is asked for: between fork and that it may have died."""
    done = subprocess.run(
        [sys.executable, "-m", "groundspeed.measure.worker", "1", str(os.getpid() + 1)],
        env=worker_environment({}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 1 and done.stdout == b""
