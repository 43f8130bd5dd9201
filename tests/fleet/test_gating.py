"""A gate over a fleet says what a gate here says; with the fake engine of the gate's tests, and without Ray."""

from __future__ import annotations

import argparse
import json
import pickle
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from groundspeed.errors import UserError
from groundspeed.fleet.gating import BASE, HEAD, Comparisons, _with_trees
from groundspeed.gate import gate_command
from groundspeed.gate.evidence import Evidence, Measuring, Mixed
from groundspeed.gate.paired import PairSamples
from groundspeed.gate.plan import Plan
from groundspeed.gate.session import Where
from groundspeed.tree import Tree
from tests.fleet.conftest import needs_ray
from tests.fleet.made_up import about
from tests.gate.conftest import EAGER, ROW, SPEC, FakeEngine, Repo, environment

MACHINE = "cpu-fake"


@pytest.fixture
def repo(tmp_path, capsys):
    """Three operators: one became slower, one is suspect and is not, one is new code of the same speed."""
    (tmp_path / "repo").mkdir()
    repo = Repo(tmp_path / "repo", capsys)
    repo.write("asv.conf.json", "{}")
    for operator in ("first", "second", "third"):
        repo.write(f"impls/{operator}/spec.py", SPEC)
        repo.write(f"impls/{operator}/torch_eager.py", EAGER)
        repo.write(f"impls/{operator}/triton_row.py", ROW.replace("from .. import _shared\n", ""))
    repo.commit("Start")
    repo.git("checkout", "-q", "-b", "topic")
    repo.edit("impls/first/triton_row.py", "COST = 500", "COST = 600")
    repo.edit("impls/second/triton_row.py", "COST = 500", "COST = 508")
    repo.edit("impls/third/triton_row.py", "COST = 500", "COST = 500.0")
    repo.commit("Change")
    return repo


class Spread:
    """Hands each operator to a station of its own, through pickles as Ray does, in another order than the plan's."""

    def __init__(self, engine, config_of=lambda config: config, change=lambda operator, evidence: evidence):
        self.engine, self.config_of, self.change = engine, config_of, change
        self.remarks = []
        self.measured = []

    def __call__(self, plan, versions, judging, seed):
        judging = replace(judging, config=self.config_of(judging.config))
        work = Comparisons(plan, versions, judging, seed, MACHINE)
        assert not list(work.pieces(about("1", "nvidia-other"))), "another machine does not judge"
        for piece in reversed(list(work.pieces(about("1", MACHINE)))):
            if work.is_done(piece):
                continue
            order = pickle.loads(pickle.dumps(piece.order))
            assert {str(side.tree) for one in order.pairs for side in (one.pair.base, one.pair.head)} == {BASE, HEAD}
            here = {Path(BASE): versions.base.root, Path(HEAD): versions.head.root}
            pairs = tuple(_with_trees(one, here) for one in order.pairs)
            measuring = Measuring(self.engine, Tree(versions.head.root), order.judging, order.seed, lambda line: None)
            evidence = pickle.loads(pickle.dumps(measuring.run(Plan(pairs=pairs))))
            self.measured.append(order.operator)
            work.keep(piece, self.change(order.operator, evidence))
        work.give_up({}, "no station returned it")
        return work.evidence


def gate(repo, spread=None):
    """The findings and the report of a gate, spread or not."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--project", type=Path, default=repo.root)
    gate_command.add_arguments(parser)
    out = repo.root.parent / "report.json"
    words = ["--base", "main", "--head", "topic", "--json", str(out), "--device", "cpu", "--tier", "full"]
    status = gate_command.run_with(parser.parse_args(words), FakeEngine, Where("cpu", MACHINE, spread))
    repo.capsys.readouterr()
    return status, json.loads(out.read_text())


def test_a_gate_over_a_fleet_says_what_a_gate_here_says(repo):
    spread = Spread(FakeEngine())
    here, there = gate(repo), gate(repo, spread)
    assert there[0] == here[0] == 1
    assert spread.measured == ["third", "second", "first"]
    for name in ("findings", "compared", "unmeasured", "summary", "machine", "device", "touched"):
        assert there[1][name] == here[1][name], name
    assert [(step["step"], step["processes"]) for step in there[1]["steps"]] == [
        (step["step"], step["processes"]) for step in here[1]["steps"]
    ]
    verdicts = {(f["operator"], f["verdict"]) for f in there[1]["findings"] if f["metric"] == "device_cold"}
    assert verdicts == {("first", "regressed"), ("second", "unchanged"), ("third", "unchanged")}


def test_what_no_station_returned_could_not_be_measured(repo):
    def lose(operator, evidence):
        return evidence if operator != "third" else Evidence(lost={"third": "given up after 3 tries: its process died"})

    status, report = gate(repo, Spread(FakeEngine(), change=lose))
    assert status == 1, "first regressed all the same"
    assert {entry["operator"] for entry in report["unmeasured"]} == {"third"}
    assert {entry["reason"] for entry in report["unmeasured"]} == {"given up after 3 tries: its process died"}


def test_what_was_not_begun_within_the_budget_could_not_be_measured(repo):
    status, report = gate(repo, Spread(FakeEngine(), config_of=lambda config: replace(config, budget_seconds=0.0)))
    assert status == 2 and {entry["operator"] for entry in report["unmeasured"]} == {"first", "second", "third"}
    assert all("the budget of 0 s was spent" in entry["reason"] for entry in report["unmeasured"])


@pytest.mark.parametrize(("name", "mixes"), [("driver", True), ("torch", True), ("uuid_hash", False)])
def test_operators_may_be_on_different_gpus_that_are_alike(repo, name, mixes):
    def elsewhere(operator, evidence):
        if operator == "second":
            other = msgspec.structs.replace(evidence.runner.environment, **{name: "other"})
            evidence.runner = replace(evidence.runner, environment=other)
        return evidence

    status, report = gate(repo, Spread(FakeEngine(), change=elsewhere))
    assert status == (2 if mixes else 1)
    assert ("results of two runners were mixed" in report["summary"]) == mixes


def test_processes_of_one_operator_may_not():
    evidence = Evidence()
    one = PairSamples("a", 0, MACHINE, environment(uuid_hash="one"), ())
    evidence.check_runner(one)
    with pytest.raises(Mixed):
        evidence.check_runner(replace(one, process=1, environment=environment(uuid_hash="two")))


@needs_ray
def test_one_kind_of_machine_judges():
    from groundspeed.fleet.ray_nodes import Machines

    hosts = {"nvidia-a": frozenset({"h1", "h2"}), "nvidia-b": frozenset({"h3"})}
    there = Machines({"nvidia-a": 3, "nvidia-b": 1}, hosts)
    assert there.chosen("nvidia-b") == "nvidia-b" and there.others("nvidia-b") == {"h1", "h2"}
    with pytest.raises(UserError, match=r"the fleet has nvidia-a \(3\), nvidia-b \(1\): one kind of machine judges"):
        there.chosen(None)
    with pytest.raises(UserError, match="--fleet-machine nvidia-c: the fleet has"):
        there.chosen("nvidia-c")
    assert Machines({"nvidia-a": 3}, hosts).chosen(None) == "nvidia-a"
    with pytest.raises(UserError, match="the fleet has none"):
        Machines({}, {}).chosen(None)
