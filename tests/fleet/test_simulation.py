"""The simulated fleet: its clock by hand, its figures from records, its page as it is written."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import pytest

from groundspeed.fleet.simulation import engine, page
from groundspeed.fleet.simulation.engine import POLICIES, Policy, apart, sharded, simulate, whole
from groundspeed.fleet.simulation.page import BEGIN, END, PAGE, enough, outcome
from groundspeed.fleet.simulation.seen import MACHINE, OPERATORS, RUNS, Seen
from groundspeed.fleet.simulation.workload import (
    BALANCED,
    DAY,
    KINDS,
    MODELS,
    Model,
    PullRequest,
    comparison_seconds,
    pull_requests,
)
from groundspeed.records import read_record

RESULTS = Path(__file__).resolve().parents[2] / "results"
SLOW = Model("slow", 1.0, 2.0)


def request(number, arrival, *pieces):
    return PullRequest(number, arrival, KINDS[0], pieces)


@pytest.fixture
def nothing_fails(monkeypatch):
    monkeypatch.setattr(engine, "BETWEEN_FAILURES", math.inf)


def served(policy, gpus, *requests):
    day = simulate(requests, SLOW, gpus, policy, 1)
    return [(one.waited, one.took) for one in day.verdicts], day


def test_one_job_does_all_in_turn_and_the_next_waits(nothing_fails):
    verdicts, day = served(Policy("p", whole, 10.0), 1, request(0, 0.0, 30.0, 20.0), request(1, 50.0, 5.0))
    assert verdicts == [(0.0, 110.0), (60.0, 80.0)], "(30 + 20) × 2 + 10, and 5 × 2 + 10 after it"
    assert (day.held, day.peak, day.lost) == (130.0, 1, 0.0)


def test_apart_the_longest_decides(nothing_fails):
    verdicts, day = served(Policy("p", apart, 10.0), 3, request(0, 0.0, 30.0, 20.0), request(1, 40.0, 5.0))
    assert verdicts == [(0.0, 70.0), (0.0, 20.0)] and day.peak == 3 and day.held == 140.0


def test_shards_are_cut_as_a_run_is(nothing_fails):
    assert sharded(2)([5.0, 4.0, 3.0, 3.0, 3.0]) == [[5.0, 3.0], [4.0, 3.0, 3.0]]
    assert sharded(4)([1.0]) == [[1.0]]


def test_smallest_first_lets_the_small_one_pass(nothing_fails):
    waiting = [request(0, 0.0, 100.0), request(1, 1.0, 50.0), request(2, 2.0, 1.0)]
    first_come, _ = served(Policy("p", apart, 0.0), 1, *waiting)
    smallest, _ = served(Policy("p", apart, 0.0, smallest_first=True), 1, *waiting)
    assert [took for _, took in first_come] == [200.0, 299.0, 300.0]
    assert [took for _, took in smallest] == [200.0, 301.0, 200.0]


def test_what_is_lost_is_done_again(monkeypatch):
    monkeypatch.setattr(engine, "BETWEEN_FAILURES", 400.0)
    requests = [request(number, number * 1000.0, 50.0, 20.0) for number in range(200)]
    day = simulate(requests, SLOW, 2, Policy("p", apart, 0.0), 1)
    assert len(day.verdicts) == 200 and day.lost > 0
    assert day.held == pytest.approx(200 * 140.0 + day.lost), "every piece was done once, and what was lost besides"


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_everybody_is_served_and_no_gpu_twice(policy):
    requests = pull_requests(1, 200, 7)
    for gpus in (3, 30):
        day = simulate(requests, MODELS[4], gpus, policy, 7)
        assert [one.number for one in day.verdicts] == list(range(len(requests))) and day.peak <= gpus
        assert all(0 <= one.waited < one.took for one in day.verdicts)
        work = sum(sum(one.pieces) for one in requests) * MODELS[4].slower
        assert day.held - day.lost >= work


def test_the_same_seed_is_the_same_fleet_and_another_is_not():
    assert pull_requests(1, 100, 5) == pull_requests(1, 100, 5) != pull_requests(1, 100, 6)
    requests = pull_requests(1, 100, 5)
    assert outcome(requests, 50, POLICIES[2]) == outcome(requests, 50, POLICIES[2])


def test_the_pull_requests_are_as_many_and_of_the_kinds_that_are_stated():
    requests = pull_requests(20, 500, 3)
    assert abs(len(requests) - 10_000) < 3 * 100, "three standard deviations of a Poisson count"
    for kind in KINDS:
        count = sum(one.kind is kind for one in requests)
        sd = math.sqrt(len(requests) * kind.chance * (1 - kind.chance))
        assert abs(count - kind.chance * len(requests)) < 4 * sd
    assert all(one.arrival <= other.arrival for one, other in pairwise(requests))
    assert requests[-1].arrival < 20 * DAY
    for models in (MODELS, BALANCED):
        assert sum(model.share for model in models) == pytest.approx(1.0)


def test_a_comparison_costs_what_the_gate_does():
    seen = Seen(implementations=4, rows=8, start=2.0, once=10.0, rest=4.0)
    assert comparison_seconds(seen, 0.25, suspect=False) == 5 * (2 + 2 * 0.25 * 4) + 2 * 0.25 * 10
    assert comparison_seconds(seen, 1.0, suspect=True) == 15 * (2 + 2 * 4) + 2 * 2 * 10


def test_enough_is_the_smallest_that_stays_near():
    made = [outcome(pull_requests(1, 100, 5), gpus, POLICIES[2]) for gpus in (200, 100, 10)]
    best = page._quantile(made[0].took, 0.95)
    near = [one.gpus for one in made if page._quantile(one.took, 0.95) <= 1.1 * best]
    assert enough(made) == min(near) < 200


def test_what_operators_cost_is_what_the_records_say():
    found = {}
    for run in RUNS:
        for path in sorted((RESULTS / MACHINE / "records" / run).glob("*.jsonl.gz")):
            record = read_record(path)
            seconds = record.footer.seconds
            once = sum(seconds.get(phase, 0.0) for phase in ("load", "prepare", "first run"))
            start = seconds.get("start", 0.0) + seconds.get("ceilings", 0.0)
            found[record.header.operator] = Seen(
                len({row.implementation for row in record.measurements}),
                sum(row.status == "ok" for row in record.measurements),
                round(start, 1),
                round(once, 1),
                round(seconds["total"] - start - once, 1),
            )
    if not found:
        pytest.skip(f"the records of {', '.join(RUNS)} are not in this checkout")
    assert found == OPERATORS


def test_the_page_is_what_the_simulation_says():
    """python -m groundspeed.fleet.simulation.page --write"""
    text = PAGE.read_text(encoding="utf-8")
    assert text.split(BEGIN)[1].split(END)[0] == page.page()
