"""A world size that cannot be had fails its own cases, and those of fewer ranks are measured all the same."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from groundspeed.errors import UserError
from groundspeed.measure.protocol import CaseDone, Channel, Job, Ready, Row, decode_event
from groundspeed.measure.ranks import crew, work
from groundspeed.measure.ranks.crew import RankLost
from groundspeed.operator import Case
from groundspeed.records import Environment, Measurement
from groundspeed.tree import Tree
from tests.core.scratch import make_tree
from tests.ranks.scratch import EAGER, SPEC


class Crew:
    """Ranks that join unless there are too many."""

    most = 1
    made: tuple[int, ...] = ()

    def __init__(self, job: Job, world: int, serve: object) -> None:
        self.world = world
        Crew.made += (world,)

    def ask(self, order: str, *given: object, limit: float, only: int | None = None) -> list[object]:
        if order == "join" and self.world > self.most:
            raise RankLost(self.world - 1, "timeout", "no answer within 180 s")
        answers = {
            "listen": 29500,
            "imports": None,
            "load": ({}, ""),
            "free_memory": 1 << 40,
            "describe": Environment(device="cpu", device_name="a CPU", python="3", os="Linux"),
        }
        return [answers.get(order)] * (self.world if only is None else 1)

    def end(self) -> None: ...


def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> list[object]:
    """Events of a job with cases of one and two ranks, where no more than ``most`` can be started."""
    monkeypatch.setattr(Crew, "most", most)
    monkeypatch.setattr(Crew, "made", ())
    monkeypatch.setattr(work, "Crew", Crew)
    monkeypatch.setattr(work, "measure", lambda table, number, case, names: {name: done(name, case) for name in names})
    tree = Tree(make_tree(tmp_path, {"total": {"spec": SPEC, "torch_eager": EAGER}}))
    spec = tree.spec("total")
    cases = tuple((case.dtype, case.shape) for case in spec.bench_cases)
    root = str(tree.root)
    job = Job("total", root, root, "cpu", ("torch_eager",), cases)
    stream = io.BytesIO()
    work.work(job, tree, spec, Channel(stream), {})
    return [decode_event(line) for line in stream.getvalue().splitlines()]


def done(name: str, case: Case) -> Measurement:
    return Measurement(name, case.dtype, case.dims, "ok")


def test_a_world_that_does_not_come_up_is_tried_once_and_costs_no_other(tmp_path, monkeypatch):
    events = told(tmp_path, monkeypatch, most=1)
    rows = {event.case: event.measurement for event in events if isinstance(event, Row)}
    assert [rows[number].status for number in range(3)] == ["ok", "failed", "skipped"]
    assert rows[1].reason == "total: 2 ranks could not be started: rank 1: no answer within 180 s"
    assert Crew.made == (2, 1)
    assert sum(isinstance(event, Ready) for event in events) == 1
    assert {event.case for event in events if isinstance(event, CaseDone)} == {0, 1, 2}


def test_cases_of_the_most_ranks_come_first_and_share_a_crew(tmp_path, monkeypatch):
    events = told(tmp_path, monkeypatch, most=2)
    assert [event.case for event in events if isinstance(event, CaseDone)] == [1, 0, 2]
    assert Crew.made == (2, 1)


def test_no_rank_at_all_is_nobody_s_fault_but_the_machine_s(tmp_path, monkeypatch):
    with pytest.raises(UserError, match="1 ranks could not be started"):
        told(tmp_path, monkeypatch, most=0)


def test_a_rank_that_cannot_begin_says_why(tmp_path):
    def cannot(*given: object):
        raise RuntimeError("no device for this rank")

    ranks = crew.Crew(Job("total", str(tmp_path), str(tmp_path), "cpu", (), ()), 1, cannot)
    with pytest.raises(RankLost, match="status 1 too early: RuntimeError: no device for this rank"):
        ranks.ask("listen", limit=10.0)
