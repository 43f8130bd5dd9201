"""The gate's engine with scripted workers: what each process is asked, and a device that is lost half-way."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundspeed.gate.paired import MeasureLost, Pair, PairRequest, Side
from groundspeed.measure import paired
from groundspeed.measure.paired import PairedEngine
from groundspeed.measure.process import Worker
from groundspeed.measure.protocol import CaseDone, Done, Dying
from groundspeed.operator import Case
from tests.core.scratch import EAGER, make_tree
from tests.measure.fake_worker import DIE, READY, row, script, start

WHOLE = script(READY, row(0, "base/torch_eager"), row(0, "head/torch_eager"), CaseDone(0), Done({"time": 1.5}))


@pytest.fixture
def request_of(tmp_path):
    trees = [make_tree(tmp_path / side, {"double": {"torch_eager": EAGER}}) for side in ("base", "head")]
    base, head = (Side(Path(tree), "torch_eager") for tree in trees)
    pair = Pair("torch_eager", base, head, (Case.of("float32", {"N": 0}),))

    def made(**more):
        given = {"processes": 3, "rounds": 30, "seed": 100, **more}
        return PairRequest("double", head.tree, (pair,), ("device_cold",), "cpu", **given)

    return made


@pytest.fixture
def scripted(monkeypatch):
    """``scripted(scripts)`` gives an engine whose workers follow them, and what they were asked to do."""

    def engine(scripts, tell=lambda line: None):
        waiting, asked, closed = iter(scripts), [], []

        class Workers:
            def __init__(self, environment, compiler):
                self.environment, self.compiler = environment, compiler
                self.remarks = ["each worker does its own imports"]

            def __enter__(self):
                return self

            def __exit__(self, *of):
                closed.append(self)

            def start(self):
                return start(next(waiting))

            def check(self):
                pass

        hand_over = Worker.hand_over

        def remember(self, job):
            asked.append(job)
            return hand_over(self, job)

        monkeypatch.setattr(paired, "Workers", Workers)
        monkeypatch.setattr(Worker, "hand_over", remember)
        return PairedEngine(tell), asked, closed

    return engine


def test_every_process_is_one_worker_with_its_own_inputs_and_order(scripted, request_of, tmp_path):
    engine, asked, _ = scripted([WHOLE] * 3)
    found = list(engine(request_of(first_process=5, tunings=tmp_path / "tunings")))
    assert [samples.process for samples in found] == [5, 6, 7]
    assert [job.seed for job in asked] == [105, 106, 107] and {job.rounds for job in asked} == {30}
    assert [job.implementations[0] for job in asked] == ["head/torch_eager", "base/torch_eager", "head/torch_eager"]
    assert [job.vouched for job in asked] == [False, True, True]
    assert {job.tunings for job in asked} == {str(tmp_path / "tunings")}
    (outcome,) = found[0].outcomes
    assert outcome.base.status == outcome.head.status == "ok" and outcome.base.implementation == "torch_eager"
    assert found[0].seconds["time"] == 1.5


def test_a_request_that_was_judged_before_is_judged_briefly_from_the_first_process_on(scripted, request_of):
    engine, asked, _ = scripted([WHOLE] * 2)
    list(engine(request_of(processes=2, vouched=True)))
    assert [job.vouched for job in asked] == [True, True] and {job.tunings for job in asked} == {""}


@pytest.mark.parametrize("end", [DIE, script(Dying("CUDA error: unspecified launch failure")) + "\nsys.exit(70)"])
def test_a_device_that_is_lost_half_way_ends_the_request_after_what_was_measured(scripted, request_of, end):
    engine, asked, _ = scripted([WHOLE, WHOLE, end])
    iterator = engine(request_of(processes=5))
    assert [next(iterator).process, next(iterator).process] == [0, 1]
    with pytest.raises(MeasureLost, match="double"):
        next(iterator)
    assert len(asked) == 3


def test_one_nursery_serves_all_requests_until_the_engine_is_closed(scripted, request_of):
    engine, asked, closed = scripted([WHOLE] * 3)
    for _ in range(2):
        list(engine(request_of(processes=1)))
    assert not closed
    engine.close()
    assert len(closed) == 1
    list(engine(request_of(processes=1)))
    engine.close()
    assert len(closed) == 2 and len(asked) == 3


def test_what_makes_workers_start_later_is_told_once(scripted, request_of):
    told = []
    engine, _, _ = scripted([WHOLE] * 3, told.append)
    for _ in range(2):
        list(engine(request_of(processes=1)))
    engine.close()
    list(engine(request_of(processes=1)))
    assert told == ["each worker does its own imports"]
