"""The p99 rule: exact counts, its false alarms, and the slow paths that it finds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from groundspeed.analysis import tail_simulation
from groundspeed.analysis.rule import FRESH_PROCESSES
from groundspeed.analysis.simulation import NOISY, SCENARIOS, simulate
from groundspeed.analysis.tail_rule import TAIL_ROUNDS, ProcessSamples, compare_tails, fisher_p
from groundspeed.analysis.tail_simulation import SlowPath, T, simulate_tails

QUIET = SCENARIOS[0]
NOISIEST = NOISY[-1]


def side(random, count, rate=0.0, size=1.0):
    """Samples of one side in one process, with ``rate`` of them ``size`` times as long."""
    samples = random.normal(1, 0.005, count) + 0.10 * (random.random(count) < 0.02)
    return samples * np.where(random.random(count) < rate, size, 1.0)


def draw(random, rate=0.0, size=1.0, processes=FRESH_PROCESSES, rounds=TAIL_ROUNDS):
    return [ProcessSamples(side(random, rounds), side(random, rounds, rate, size)) for _ in range(processes)]


@pytest.mark.parametrize(("base", "n", "head", "m"), [(1, 5, 4, 5), (0, 4, 3, 6), (2, 5, 2, 5), (3, 4, 0, 4)])
def test_fisher_counts_every_arrangement(base, n, head, m):
    slow = base + head
    arrangements = list(itertools.combinations(range(n + m), slow))
    as_many = sum(sum(i < m for i in chosen) >= head for chosen in arrangements)
    assert fisher_p(base, n, head, m) == pytest.approx(as_many / len(arrangements))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_no_false_alarm(scenario):
    outcome = simulate_tails(scenario, SlowPath(), 300, seed=11)
    assert (outcome.regressed, outcome.improved) == (0, 0)


# Where head's samples are divided by base's median, 0.9, 7.9 and 17.0 % regressed falsely at sd 10, 20 and 30 %.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "most"),
    list(zip(NOISY, (0, 4, 20, 20), strict=True)),
    ids=lambda given: getattr(given, "meaning", None),
)
def test_processes_that_scatter_seldom_convict_identical_code(scenario, most):
    outcome = simulate_tails(scenario, SlowPath(), 1000, seed=12)
    assert outcome.regressed <= most and outcome.improved <= most


@pytest.mark.parametrize("scenario", NOISY[1:], ids=lambda scenario: scenario.meaning)
def test_processes_that_scatter_never_convict_identical_code_once_there_is_a_noise_floor(scenario):
    floor = simulate(scenario, 0.0, T, 2000, seed=12).floor
    settled = simulate_tails(scenario, SlowPath(), 300, seed=12, floor=floor)
    assert settled.regressed + settled.improved == 0


def test_suspects_are_rare_in_quiet_series():
    assert simulate_tails(QUIET, SlowPath(), 500, seed=13).suspects <= 3


@pytest.mark.parametrize(("share", "length", "least"), [(0.03, 1.4, 0.90), (0.05, 2.0, 0.97), (0.10, 1.3, 0.97)])
def test_a_rare_slow_path_is_found(share, length, least):
    assert simulate_tails(QUIET, SlowPath(share, length), 200, seed=14).power >= least


@pytest.mark.parametrize("floor", [None, 1.0])
def test_a_rare_slow_path_is_found_where_processes_scatter_whatever_the_noise_floor(floor):
    assert simulate_tails(NOISIEST, SlowPath(0.05, 2.0), 100, seed=15, floor=floor).power >= 0.95


def test_a_median_that_shifted_takes_the_p99_with_it():
    outcome = simulate_tails(QUIET, SlowPath(slower=0.25), 100, seed=16)
    assert outcome.power == 1.0
    comparison = compare_tails(
        [ProcessSamples(each.base, each.base * 1.25) for each in draw(np.random.default_rng(16))], T
    )
    assert comparison.is_shifted(T) and not comparison.has_slow_path(T) and comparison.ratio == pytest.approx(1.25)
    assert not comparison.convicts(T, floor=0.2) and comparison.convicts(T, floor=0.1)


def test_a_faster_median_does_not_excuse_nor_condemn_the_tail():
    processes = draw(np.random.default_rng(14), 0.05, 2.0)
    faster = [ProcessSamples(each.base, each.head * 0.8) for each in processes]
    assert compare_tails(faster, T).convicts(T)
    steady = [ProcessSamples(each.base, each.base * 0.5) for each in processes]
    assert not compare_tails(steady, T).convicts(T)


def test_one_process_in_a_slow_mode_is_no_slow_path():
    processes = draw(np.random.default_rng(15))
    processes[3] = ProcessSamples(processes[3].base, processes[3].head * 2)
    assert not compare_tails(processes, T).suspect(T)
    # Nor is one in which a quarter of the calls were slow, which its median does not show.
    slow = np.where(np.arange(TAIL_ROUNDS) % 4 == 0, 2.0, 1.0)
    processes[3] = ProcessSamples(processes[3].base, processes[3].base * slow)
    comparison = compare_tails(processes, T)
    assert comparison.p < 1e-5 and comparison.spread < 0.5 and not comparison.convicts(T)


def test_a_slow_process_is_its_clock_and_no_slow_path():
    processes = [ProcessSamples(each.base, each.head * factor) for each, factor in zip(
        draw(np.random.default_rng(17)), (1.5, 0.7, 1.4, 1.6, 0.8, 1.5, 1.3, 0.9, 1.5, 0.7), strict=True
    )]  # fmt: skip
    comparison = compare_tails(processes, T)
    assert comparison.ratio > 1.4 and comparison.tail_ratio < 1.05 and not comparison.convicts(T)


def test_the_published_tables_list_every_scenario(monkeypatch):
    monkeypatch.setattr(tail_simulation, "SHARES", (0.05,))
    table = tail_simulation.alarm_table(20, seed=1)
    assert all(scenario.meaning in table for scenario in (*SCENARIOS, *NOISY))
    assert tail_simulation.path_table(20, seed=1).count("\n") == 2


def test_nothing_is_compared_with_nothing():
    with pytest.raises(ValueError):
        compare_tails([], T)
    with pytest.raises(ValueError):
        compare_tails([ProcessSamples(np.array([]), np.array([1.0]))], T)
