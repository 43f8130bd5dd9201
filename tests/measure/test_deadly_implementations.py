"""Implementations that kill their worker, or make it hang: each is named, and the others are measured."""

from __future__ import annotations

import pytest

from groundspeed.measure.protocol import Job
from groundspeed.measure.supervisor import Progress, supervise
from groundspeed.tree import Tree
from tests.core.scratch import ADD, SPEC, calls, job, make_tree, rows_by_name, sweep

pytestmark = pytest.mark.slow

SEGFAULT = "ctypes.string_at(0)"


@pytest.fixture(scope="module")
def deadly(tmp_path_factory):
    """One sweep; every one of these costs it a worker, the one that dies in the timed rounds two."""
    files = {
        "torch_add": ADD,
        "torch_crash_import": "import ctypes\nctypes.string_at(0)\n",
        "torch_crash_prepare": f"import ctypes\n\n\ndef prepare(x):\n    {SEGFAULT}\n",
        "torch_crash_check": calls(f"if n == 2: print('last words'); {SEGFAULT}"),
        "torch_crash_time": calls(f"if within('collect'): {SEGFAULT}"),
        "torch_exits": calls("if n == 3: os._exit(0)"),
        "torch_hang": calls("if n == 2: time.sleep(3600)"),
        "torch_hang_prepare": "import time\n\n\ndef prepare(x):\n    time.sleep(3600)\n",
        "torch_hang_first": calls("if n == 1: time.sleep(3600)"),
        "torch_killed": calls("if n == 2: os.kill(os.getpid(), signal.SIGKILL)"),
    }
    root = make_tree(tmp_path_factory.mktemp("deadly"), {"double": files})
    outcome = sweep(job(root, limits={"check": 8.0, "prepare": 7.0, "first run": 6.0}))
    return outcome, rows_by_name(outcome)


@pytest.mark.parametrize(
    ("name", "failure", "reason"),
    [
        ("torch_crash_import", "crash", "the worker died of SIGSEGV in load"),
        ("torch_crash_prepare", "crash", "the worker died of SIGSEGV in prepare of float32 N=64"),
        ("torch_crash_check", "crash", "the worker died of SIGSEGV: last words in check of float32 N=64"),
        ("torch_crash_time", "crash", "the worker died of SIGSEGV in time of float32 N=64"),
        ("torch_exits", "crash", "the worker exited with status 0 too early in check of float32 N=64"),
        ("torch_hang", "timeout", "no sign of life for 8 s in check of float32 N=64"),
        ("torch_hang_prepare", "timeout", "no sign of life for 7 s in prepare of float32 N=64"),
        ("torch_hang_first", "timeout", "no sign of life for 6 s in first run of float32 N=64"),
        ("torch_killed", "oom", "the worker died of SIGKILL (killed: out of memory?) in check of float32 N=64"),
    ],
)
def test_the_culprit_is_named_with_how_it_ended_and_where(deadly, name, failure, reason):
    rows = deadly[1][name]
    assert [(row.status, row.failure, row.reason) for row in rows] == [("failed", failure, reason)] * 2


@pytest.mark.parametrize("name", ["torch_eager", "torch_add"])
def test_the_others_are_measured_in_the_same_rounds(deadly, name):
    outcome, rows = deadly
    assert outcome.problem == ""
    assert [row.status for row in rows[name]] == ["ok", "ok"]
    for row, eager in zip(rows[name], rows["torch_eager"], strict=True):
        assert len(row.samples["device_cold"]) == len(eager.samples["device_cold"])


def test_a_spec_that_kills_or_raises_costs_its_case_and_accuses_no_implementation(tmp_path):
    draw = "    import torch\n"
    spec = SPEC.replace(draw, "    import ctypes, torch\n    if N == 0: ctypes.string_at(0)\n", 1)
    answer = "    return 2 * x\n"
    spec = spec.replace(answer, f'    if len(x) == 7: raise ValueError("no 7")\n{answer}')
    spec = spec.replace("dict(N=7))", "dict(N=7), dict(N=8))")
    assert spec.count("if N == 0") == spec.count("no 7") == spec.count("dict(N=8)") == 1
    root = make_tree(tmp_path, {"double": {"spec": spec, "torch_add": ADD}})
    cases = tuple((case.dtype, case.shape) for case in Tree(root).spec("double").check_cases)
    rows = rows_by_name(sweep(job(root, cases=cases, check_only=True)))
    assert set(rows) == {"torch_eager", "torch_add"}
    for killed, raised, sound in rows.values():
        assert (killed.failure, killed.reason) == ("crash", "the worker died of SIGSEGV in inputs of float32 N=0")
        line = spec.partition("raise")[0].count("\n") + 1
        said = f"spec of double, inputs or reference: ValueError: no 7 (double/spec.py:{line})"
        assert (raised.failure, raised.reason) == ("error", said)
        assert sound.status == "ok"


def test_a_job_that_no_worker_can_do_is_a_problem_in_one_line(tmp_path):
    from groundspeed.measure.process import worker_environment

    said: list[Progress] = []
    refused = job(make_tree(tmp_path, {"double": {}}))
    outcome = supervise(refused, worker_environment({"TRITON_INTERPRET": "1"}), said.append)
    assert outcome.environment is None
    assert outcome.problem == (
        "double: the worker ended in start: TRITON_INTERPRET is set: "
        "an interpreted kernel is never timed; unset it and run again"
    )


def test_limits_are_the_workers_own_unless_the_job_has_others():
    from groundspeed.measure.protocol import Phase
    from groundspeed.measure.supervisor import Outcome, _Watch

    plain = Job("double", "", "", "cpu", (), ())
    for limits, expected in (({}, 120.0), ({"check": 3.0}, 3.0), ({"time": 3.0}, 120.0)):
        watch = _Watch([0], Outcome(), Job("double", "", "", "cpu", (), (), limits=limits), lambda progress: None)
        watch.take(Phase("check", 120.0, 0, "torch_add"))
        assert watch.limit == expected
    assert plain.limits == {}
