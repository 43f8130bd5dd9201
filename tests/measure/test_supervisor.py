"""What the supervisor concludes from how a worker ends, and what it asks of the next."""

from __future__ import annotations

import msgspec
import pytest

from groundspeed.measure import supervisor
from groundspeed.measure.process import Worker
from groundspeed.measure.protocol import CaseDone, Done, Dying, Job, Ready
from tests.measure import fake_worker
from tests.measure.fake_worker import DIE, READY, phase, row, script, whole


def job(cases: int = 2, **changes: object) -> Job:
    shapes = tuple(("float32", (("N", number),)) for number in range(cases))
    return Job("double", "tree", "tree", "cpu", ("a", "b"), shapes, **changes)  # type: ignore[arg-type]


def told(outcome: supervisor.Outcome) -> dict[tuple[int, str], str]:
    return {key: one.reason or one.status for key, one in sorted(outcome.rows.items())}


def test_one_worker_that_does_all_its_work(monkeypatch):
    outcome, asked = fake_worker.supervise(monkeypatch, job(), [whole(2, "a", "b")])
    assert set(told(outcome).values()) == {"ok"} and len(outcome.rows) == 4
    assert outcome.seconds["time"] == 1.0 and outcome.problem == "" and asked == [job()]


def test_after_a_death_the_cases_that_are_done_stay_and_the_culprit_is_left_out(monkeypatch):
    dies = script(READY, row(0, "a"), row(0, "b"), CaseDone(0), row(1, "a"), phase("check", 1, "b"), DIE)
    outcome, asked = fake_worker.supervise(monkeypatch, job(3), [dies, whole(2, "a")])
    assert told(outcome) == {
        (0, "a"): "ok",
        (0, "b"): "ok",
        (1, "a"): "ok",
        (1, "b"): "the worker died of SIGSEGV in check of float32 N=1",
        (2, "a"): "ok",
        (2, "b"): "the worker died of SIGSEGV in check of float32 N=1",
    }
    assert asked[1].implementations == ("a",) and asked[1].cases == job(3).cases[1:]


def test_the_cases_whose_energy_is_asked_for_are_the_same_after_a_restart():
    """A worker counts its own cases, from 0 on; two restarts count from the job's each time."""
    whole_job = Job("o", "t", "t", "cuda", ("a",), tuple(("float32", (("N", n),)) for n in range(6)), energy=(1, 4))

    def metered(attempt: Job) -> list[int]:
        return [attempt.case_list()[number].dims["N"] for number in attempt.energy]

    rest = supervisor._narrowed(whole_job, whole_job, [3, 4, 5])
    assert metered(rest) == [4]
    assert metered(supervisor._narrowed(rest, whole_job, [4, 5])) == [4]
    assert metered(supervisor._narrowed(rest, whole_job, [5])) == []


def test_a_death_while_all_are_timed_is_looked_into_one_by_one(monkeypatch):
    together = script(READY, phase("time", 0), DIE)
    alone = script(READY, phase("time", 0, "b"), DIE)
    outcome, asked = fake_worker.supervise(monkeypatch, job(1), [together, alone, whole(1, "a")])
    assert [one.solo for one in asked] == [False, True, False]
    assert told(outcome) == {(0, "a"): "ok", (0, "b"): "the worker died of SIGSEGV in time of float32 N=0"}


def test_a_death_that_happens_only_together_costs_the_case_and_no_other(monkeypatch):
    together = script(READY, phase("time", 0), DIE)
    outcome, asked = fake_worker.supervise(monkeypatch, job(2), [together, together, whole(1, "a", "b")])
    reason = "the worker died of SIGSEGV in time of float32 N=0, although each implementation passed alone"
    assert told(outcome) == {(0, "a"): reason, (0, "b"): reason, (1, "a"): "ok", (1, "b"): "ok"}
    assert asked[2].cases == job(2).cases[1:] and not asked[2].solo


def test_passing_alone_on_one_case_is_no_verdict_on_the_next(monkeypatch):
    first = script(READY, phase("time", 0), DIE)
    second = script(READY, row(0, "a"), row(0, "b"), CaseDone(0), phase("time", 1), DIE)
    third = script(READY, phase("time", 0, "a"), DIE)
    outcome, asked = fake_worker.supervise(monkeypatch, job(2), [first, second, third, whole(1, "b")])
    assert [one.solo for one in asked] == [False, True, True, False]
    assert told(outcome)[0, "a"] == "ok" and told(outcome)[1, "a"].startswith("the worker died of SIGSEGV in time of")
    assert told(outcome)[1, "b"] == "ok"


def test_a_death_in_the_specs_own_code_costs_its_case(monkeypatch):
    dies = script(READY, phase("inputs", 0), DIE)
    outcome, asked = fake_worker.supervise(monkeypatch, job(2), [dies, whole(1, "a", "b")])
    assert told(outcome)[0, "a"] == told(outcome)[0, "b"] == "the worker died of SIGSEGV in inputs of float32 N=0"
    assert told(outcome)[1, "b"] == "ok" and len(asked) == 2


def test_a_death_before_anything_could_be_measured_is_the_operators_problem(monkeypatch):
    outcome, _ = fake_worker.supervise(monkeypatch, job(1), ["print('ImportError: no torch'); sys.exit(1)"])
    assert outcome.environment is None
    said = "double: the worker ended in start: the worker exited with status 1 too early: ImportError: no torch"
    assert outcome.problem == said
    assert set(told(outcome).values()) == {said}


def test_silence_beyond_the_phases_limit_is_a_timeout(monkeypatch):
    hangs = script(READY, phase("prepare", 0, "a"), "time.sleep(600)")
    outcome, _ = fake_worker.supervise(monkeypatch, job(1, limits={"prepare": 0.3}), [hangs, whole(1, "b")])
    assert outcome.rows[0, "a"].failure == "timeout"
    assert outcome.rows[0, "a"].reason == "no sign of life for 0 s in prepare of float32 N=0"
    assert outcome.rows[0, "b"].status == "ok"


def test_signs_of_life_keep_a_long_phase_alive(monkeypatch):
    beats = [phase("time", 0), "time.sleep(0.4)"] * 5
    outcome, _ = fake_worker.supervise(
        monkeypatch, job(1, limits={"time": 1.5}), [script(READY, *beats, whole(1, "a", "b"))]
    )
    assert set(told(outcome).values()) == {"ok"}


def test_a_lost_device_is_told_in_its_own_words(monkeypatch):
    lost = script(READY, phase("check", 0, "a"), Dying("CUDA error: an illegal memory access"), "os._exit(70)")
    outcome, _ = fake_worker.supervise(monkeypatch, job(1), [lost, whole(1, "b")])
    assert outcome.rows[0, "a"].failure == "crash"
    assert outcome.rows[0, "a"].reason == "CUDA error: an illegal memory access in check of float32 N=0"


def test_one_that_leaves_its_process_unfit_for_others_is_an_error_in_the_workers_words(monkeypatch):
    refused = script(READY, phase("load", -1, "b"), Dying("double/b: it changes torch", "error"), "os._exit(2)")
    outcome, asked = fake_worker.supervise(monkeypatch, job(2), [refused, whole(2, "a")])
    assert [outcome.rows[case, "b"].failure for case in (0, 1)] == ["error"] * 2
    assert told(outcome)[0, "b"] == told(outcome)[1, "b"] == "double/b: it changes torch"
    assert told(outcome)[1, "a"] == "ok" and asked[1].implementations == ("a",)


def test_a_record_keeps_the_versions_of_libraries_whose_implementations_ended_a_worker(monkeypatch):
    def ready(**libraries):
        return Ready(msgspec.structs.replace(READY.environment, libraries=libraries))

    dies = script(ready(jax="1", tvm="2"), row(0, "a"), row(0, "b"), CaseDone(0), phase("check", 1, "b"), DIE)
    others = script(ready(jax="1"), row(0, "a"), CaseDone(0), Done({}))
    outcome, _ = fake_worker.supervise(monkeypatch, job(2), [dies, others])
    assert outcome.rows[0, "b"].status == "ok" and outcome.environment.libraries == {"jax": "1", "tvm": "2"}


@pytest.mark.parametrize("code", [0, 1])
def test_leaving_early_is_a_crash_whatever_the_exit_status(monkeypatch, code):
    leaves = script(READY, phase("check", 0, "a"), f"os._exit({code})")
    outcome, _ = fake_worker.supervise(monkeypatch, job(1), [leaves, whole(1, "b")])
    assert outcome.rows[0, "a"].reason == f"the worker exited with status {code} too early in check of float32 N=0"
    assert outcome.rows[0, "b"].status == "ok"


def test_dying_after_the_work_is_done_loses_nothing(monkeypatch):
    outcome, _ = fake_worker.supervise(monkeypatch, job(1), [whole(1, "a", "b") + f"\n{DIE}"])
    assert set(told(outcome).values()) == {"ok"} and outcome.problem == ""


def test_when_every_implementation_kills_it_ends(monkeypatch):
    scripts = [script(READY, phase("load", -1, name), DIE) for name in "ab"]
    outcome, _ = fake_worker.supervise(monkeypatch, job(2), scripts)
    assert set(told(outcome).values()) == {"the worker died of SIGSEGV in load"} and len(outcome.rows) == 4


def test_it_gives_up_at_last(monkeypatch):
    monkeypatch.setattr(supervisor, "_MAX_RESTARTS", 3)
    dies = script(READY, phase("time", 0), DIE)
    outcome, _ = fake_worker.supervise(monkeypatch, job(5), [dies] * 3)
    assert outcome.problem == "double: gave up after 3 workers died"


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, ValueError])
def test_an_interrupted_supervisor_leaves_no_worker(monkeypatch, interrupt):
    started: list[Worker] = []

    def start_one(environment):
        started.append(fake_worker.start(script(READY, "time.sleep(600)")))
        return started[-1]

    def interrupted(progress):
        raise interrupt

    monkeypatch.setattr(supervisor, "start_worker", start_one)
    with pytest.raises(interrupt):
        supervisor.supervise(job(), {}, interrupted)
    assert started[0].process.returncode == -9 and started[0].log.closed
