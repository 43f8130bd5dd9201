"""A library that changes torch has a worker to itself, and says so in its rows."""

from __future__ import annotations

import msgspec
import pytest

from groundspeed.analysis.speedup import speedup_table
from groundspeed.backends.libraries import LIBRARIES
from groundspeed.backends.library import Library
from groundspeed.measure import apart, supervisor
from groundspeed.measure.protocol import Job, Side
from groundspeed.measure.supervisor import Outcome, supervise
from groundspeed.records import Environment, Footer, Header, Measurement, Record

PATCHING = {
    name: Library(title=name, distribution=name, extra="", alone="it replaces torch.relu") for name in ("one", "two")
}
NAMES = ("torch_eager", "one_a", "jax_jit", "two_a", "one_b")


@pytest.fixture(autouse=True)
def libraries(monkeypatch):
    monkeypatch.setattr(apart, "LIBRARIES", {**LIBRARIES, **PATCHING})


def job(names=NAMES, sides=()):
    return Job("double", "", "", "cpu", names, (("float32", (("N", 1),)),), sides=sides)


def test_two_that_change_torch_share_a_worker_with_nobody():
    assert [piece.implementations for piece in apart.parts(job())] == [
        ("torch_eager", "jax_jit"),
        ("one_a", "one_b"),
        ("two_a",),
    ]


def test_a_job_of_what_may_share_stays_whole():
    whole = job(("torch_eager", "jax_jit", "liger_row"))
    assert apart.parts(whole) == (whole,)
    alone = job(("one_a", "one_b"))
    assert apart.parts(alone) == (alone,)


def test_base_and_head_of_one_implementation_stay_together():
    sides = tuple(
        Side(f"{which}/{name}", "", "", name, ()) for name in ("torch_eager", "one_a") for which in ("base", "head")
    )
    pieces = apart.parts(job(tuple(side.label for side in sides), sides))
    assert [piece.implementations for piece in pieces] == [
        ("base/torch_eager", "head/torch_eager"),
        ("base/one_a", "head/one_a"),
    ]


def row(name, ns=100.0):
    return Measurement(name, "float32", {"N": 1}, "ok", samples={"device_cold": [ns] * 20})


def test_the_pieces_are_put_together_and_the_ratio_across_workers_is_one_of_medians(monkeypatch):
    said = []

    def fake(piece, environment, progress, first, workers):
        progress(supervisor.Progress(piece.operator, "time", 0, 1, "", len(piece.implementations), 0))
        return Outcome(
            rows={(0, name): row(name, 100.0 if name == "torch_eager" else 50.0) for name in piece.implementations},
            environment=Environment("cpu", "", "", "", libraries={piece.implementations[0]: "1"}),
            seconds={"start": 1.0},
        )

    monkeypatch.setattr(supervisor, "_supervise", fake)
    outcome = supervise(job(), {}, said.append)
    assert {name for _, name in outcome.rows} == set(NAMES)
    assert [outcome.rows[0, name].apart for name in NAMES] == [False, True, False, True, True]
    assert outcome.environment.libraries == {"torch_eager": "1", "one_a": "1", "two_a": "1"}
    assert outcome.seconds == {"start": 3.0}
    assert [(one.rows, one.rows_expected) for one in said] == [(2, 5), (4, 5), (5, 5)]
    header = Header("r", "double", "m", "2026-01-01T00:00:00+00:00", outcome.environment)
    rows = tuple(outcome.rows[0, name] for name in NAMES)
    table = {one.implementation: one for one in speedup_table(Record(header, rows, Footer(len(rows))))}
    assert table["jax_jit"].paired and not table["one_a"].paired
    assert table["one_a"].speedup.value == table["jax_jit"].speedup.value == 2.0


def test_a_problem_of_one_piece_leaves_the_others_rows(monkeypatch):
    def fake(piece, environment, progress, first, workers):
        if piece.implementations[0] == "torch_eager":
            return Outcome(problem="the worker ended")
        return Outcome(rows={(0, piece.implementations[0]): row("x")}, environment=Environment("cpu", "", "", ""))

    monkeypatch.setattr(supervisor, "_supervise", fake)
    outcome = supervise(job(), {}, lambda where: None)
    assert outcome.problem == "the worker ended" and outcome.environment is not None
    assert set(outcome.rows) == {(0, "one_a"), (0, "two_a")}


def test_a_row_from_another_worker_survives_a_record():
    one = msgspec.structs.replace(row("one_a"), apart=True)
    assert msgspec.json.decode(msgspec.json.encode(one), type=Measurement).apart
