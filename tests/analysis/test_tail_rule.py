"""The p99 rule: exact counts, its false alarms, and the slow paths that it finds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from groundspeed.analysis.rule import FRESH_PROCESSES, PROCESSES, ROUNDS
from groundspeed.analysis.simulation import SCENARIOS
from groundspeed.analysis.tail_rule import TAIL_ROUNDS, ProcessSamples, compare_tails, fisher_p

T = 0.20


def side(random, count, scenario, rate=0.0, size=1.0):
    """Samples of one side in one process, with ``rate`` of them ``size`` times as long."""
    samples = random.normal(1, 0.005, count) + 0.10 * (random.random(count) < 0.02)
    effect = 1 + scenario.process_sd * random.standard_normal()
    effect *= 1 + scenario.slow_size * (random.random() < scenario.slow_share)
    return samples * effect * np.where(random.random(count) < rate, size, 1.0)


def draw(random, processes, rounds, scenario, rate=0.0, size=1.0):
    return [
        ProcessSamples(side(random, rounds, scenario), side(random, rounds, scenario, rate, size))
        for _ in range(processes)
    ]


def gate(random, scenario, rate=0.0, size=1.0):
    if not compare_tails(draw(random, PROCESSES, ROUNDS, scenario, rate, size), T).suspect(T):
        return False
    return compare_tails(draw(random, FRESH_PROCESSES, TAIL_ROUNDS, scenario, rate, size), T).convicts(T)


@pytest.mark.parametrize(("base", "n", "head", "m"), [(1, 5, 4, 5), (0, 4, 3, 6), (2, 5, 2, 5), (3, 4, 0, 4)])
def test_fisher_counts_every_arrangement(base, n, head, m):
    slow = base + head
    arrangements = list(itertools.combinations(range(n + m), slow))
    as_many = sum(sum(i < m for i in chosen) >= head for chosen in arrangements)
    assert fisher_p(base, n, head, m) == pytest.approx(as_many / len(arrangements))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_no_false_alarm(scenario):
    # Step 2 alone, as if everything were suspect: stricter than the gate.
    random = np.random.default_rng(11)
    comparisons = [compare_tails(draw(random, FRESH_PROCESSES, TAIL_ROUNDS, scenario), T) for _ in range(300)]
    assert not any(each.convicts(T) for each in comparisons)


def test_suspects_are_rare_in_quiet_series():
    random = np.random.default_rng(12)
    quiet = SCENARIOS[0]
    suspects = sum(compare_tails(draw(random, PROCESSES, ROUNDS, quiet), T).suspect(T) for _ in range(1000))
    assert suspects <= 30


@pytest.mark.parametrize(("rate", "size", "least"), [(0.05, 2.0, 0.95), (0.05, 1.4, 0.95), (0.10, 1.3, 0.95)])
def test_a_rare_slow_path_is_found(rate, size, least):
    random = np.random.default_rng(13)
    found = sum(gate(random, SCENARIOS[0], rate, size) for _ in range(200))
    assert found / 200 >= least


def test_a_faster_median_does_not_excuse_nor_condemn_the_tail():
    random = np.random.default_rng(14)
    processes = draw(random, FRESH_PROCESSES, TAIL_ROUNDS, SCENARIOS[0], 0.05, 2.0)
    faster = [ProcessSamples(each.base, each.head * 0.8) for each in processes]
    assert compare_tails(faster, T).convicts(T)
    steady = [ProcessSamples(each.base, each.base * 0.5) for each in processes]
    assert not compare_tails(steady, T).convicts(T)


def test_one_process_in_a_slow_mode_is_no_slow_path():
    random = np.random.default_rng(15)
    processes = draw(random, FRESH_PROCESSES, TAIL_ROUNDS, SCENARIOS[0])
    processes[3] = ProcessSamples(processes[3].base, processes[3].head * 2)
    comparison = compare_tails(processes, T)
    assert comparison.p < 1e-5 and comparison.spread < 0.5 and not comparison.convicts(T)


def test_nothing_is_compared_with_nothing():
    with pytest.raises(ValueError):
        compare_tails([], T)
    with pytest.raises(ValueError):
        compare_tails([ProcessSamples(np.array([]), np.array([1.0]))], T)
