"""How many rounds are taken, in which order, and what is said when they do not settle it. The timer is scripted."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.measure import sampling
from groundspeed.measure.sampling import Budget, exactly, sample
from groundspeed.measure.timers.base import Sample


class FakeTimer:
    """Returns ``value(run, round)`` and lets the clock run on by ``seconds`` a call; remembers the orders."""

    name = "fake"

    def __init__(self, value: Callable[[int, int], float], seconds: float, clock: list[float]) -> None:
        self.value, self.seconds, self.clock = value, seconds, clock
        self.batches: list[list[list[int]]] = []
        self._round = count()

    def collect(self, runs, orders, host_ns):
        self.batches.append([list(order) for order in orders])
        rounds = []
        for order in orders:
            assert sorted(order) == list(range(len(runs)))
            number = next(self._round)
            self.clock[0] += self.seconds * len(order)
            rounds.append([Sample(self.value(index, number), 1.0) for index in range(len(runs))])
        return rounds


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(sampling.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sampling.time, "sleep", sleep)
    return now


def steady(run: int, number: int) -> float:
    return 1000.0 + run + number % 2


def restless(run: int, number: int) -> float:
    return 1000.0 + 400 * (number % 2)


def take(timer, runs=2, budget=None, **asked):
    return sample(timer, [lambda: None] * runs, [1.0] * runs, budget or Budget(), **asked)


def test_what_runs_before_it_settles_is_not_kept(clock):
    timer = FakeTimer(lambda run, number: 1e9 if number < 3 else 5.0, 1e-5, clock)
    rounds = take(timer)
    assert sum(map(len, timer.batches[:-1])) == 3
    assert all(one.cold == 5.0 for run in rounds.samples for one in run)


def test_it_stops_when_every_interval_is_narrow(clock):
    timer = FakeTimer(steady, 1e-5, clock)
    rounds = take(timer, runs=3)
    assert [len(run) for run in rounds.samples] == [15, 15, 15]
    assert rounds.unstable == ["", "", ""] and rounds.retaken == 0
    assert [one.cold for one in rounds.samples[2]] == [1002.0 + n % 2 for n in range(3, 18)]


def test_one_that_is_restless_keeps_all_of_them_going_to_the_most_rounds(clock):
    timer = FakeTimer(lambda run, number: (restless if run else steady)(run, number), 1e-6, clock)
    rounds = take(timer)
    assert [len(run) for run in rounds.samples] == [240, 240]
    assert rounds.unstable[0] == ""
    assert rounds.unstable[1].startswith("99 % interval ±") and rounds.unstable[1].endswith("wanted ±0.5 %")
    assert "after 240 rounds in 0.0 s" in rounds.unstable[1]


def test_it_stops_when_the_budget_of_all_runs_is_spent(clock):
    timer = FakeTimer(restless, 0.01, clock)
    rounds = take(timer, budget=Budget(seconds=0.4))
    assert clock[0] - 100 >= 0.8
    assert 15 <= len(rounds.samples[0]) < 240 and clock[0] - 100 < 0.8 + 15 * 0.02 + 1e-9
    assert all(reason for reason in rounds.unstable)


def test_slow_runs_are_content_with_few_rounds(clock):
    timer = FakeTimer(steady, 2.0, clock)
    rounds = take(timer, budget=Budget(seconds=0.4))
    assert len(rounds.samples[0]) == 9
    assert clock[0] - 100 == pytest.approx((2 + 9) * 2 * 2.0)


@given(st.integers(1, 5), st.integers(1, 40))
def test_orders_go_forth_and_back_by_turns_over_all_chunks(runs, rounds):
    seen = [*sampling._orders(runs, rounds, 0), *sampling._orders(runs, 7, rounds)]
    forth = list(range(runs))
    assert seen == [forth if n % 2 == 0 else forth[::-1] for n in range(rounds + 7)]


def test_places_in_the_rounds_balance(clock):
    """Over an even number of rounds every run was first as often as last: a drift weighs on all alike."""
    timer = FakeTimer(restless, 1e-6, clock)
    take(timer, runs=3, budget=Budget(chunk=16, min_rounds=16, max_rounds=64))
    kept = [order for batch in timer.batches if len(batch) == 16 for order in batch]
    assert len(kept) == 64
    for place in range(3):
        assert sum(order[place] == 0 for order in kept) == (0 if place == 1 else 32)


def test_a_drift_does_not_tilt_the_ratio_of_two_equals(clock):
    drift = iter(range(10**6))
    timer = FakeTimer(lambda run, number: 0.0, 1e-6, clock)

    def collect(runs, orders, host_ns):
        rows = []
        for order in orders:
            row = [Sample(0.0, 0.0)] * len(runs)
            for index in order:
                row[index] = Sample(1000.0 + next(drift), 1.0)
            rows.append(row)
        return rows

    timer.collect = collect
    rounds = take(timer, budget=exactly(30))
    first, second = (sum(one.cold for one in run) for run in rounds.samples)
    assert first == second


def test_throttled_rounds_are_thrown_away_and_taken_again_after_a_pause(clock):
    hot = iter([("hardware slowdown",), ("hardware slowdown",), (), ()])
    timer = FakeTimer(lambda run, number: 5.0 if number >= 3 + 30 else 9.0, 1e-6, clock)
    rounds = take(timer, throttled=lambda: next(hot))
    assert rounds.retaken == 30
    assert [one.cold for one in rounds.samples[0]] == [5.0] * 15
    assert rounds.unstable == ["", ""] and clock[0] - 100 > 0.4


def test_rounds_that_never_cooled_are_kept_and_said_to_be_hot(clock):
    timer = FakeTimer(steady, 1e-3, clock)
    rounds = take(timer, throttled=lambda: ("hardware thermal slowdown", "hardware slowdown"))
    assert len(rounds.samples[0]) >= 15 and rounds.retaken > 0
    said = "rounds kept although throttled: hardware slowdown, hardware thermal slowdown"
    assert rounds.unstable == [said, said]


def test_a_device_that_stays_hot_cannot_hold_a_comparison_for_ever(clock):
    timer = FakeTimer(steady, 1e-6, clock)
    rounds = take(timer, budget=exactly(30), throttled=lambda: ("hardware slowdown",))
    assert len(rounds.samples[0]) == 30 and rounds.retaken == 30 * sampling._MOST_PAUSES
    assert "throttled" in rounds.unstable[0]


@pytest.mark.parametrize("values", [steady, restless, lambda run, number: 7.0])
def test_exactly_means_exactly_whatever_is_seen(clock, values):
    timer = FakeTimer(values, 1.0, clock)
    rounds = take(timer, budget=exactly(30))
    assert [len(run) for run in rounds.samples] == [30, 30] and rounds.unstable == ["", ""]


def test_a_sign_of_life_goes_out_before_every_chunk(clock):
    beats: list[float] = []
    timer = FakeTimer(restless, 1e-6, clock)
    take(timer, budget=Budget(max_rounds=45), beat=lambda: beats.append(clock[0]))
    assert len(beats) == 3


def test_work_that_takes_no_time_at_all_is_not_a_division_by_zero(clock):
    rounds = take(FakeTimer(lambda run, number: 0.0, 1e-6, clock))
    assert len(rounds.samples[0]) == 15 and rounds.unstable == ["", ""]


@given(
    st.lists(st.floats(1.0, 1e6), min_size=9, max_size=60),
    st.floats(0.001, 0.2),
    st.sampled_from([0.0, 32.0]),
)
def test_a_row_is_unstable_just_when_its_interval_is_wide(values, width, step):
    samples = [Sample(value, 1.0) for value in values]
    said = sampling._unstable(samples, step, Budget(width=width), 1.0, ())
    low, high = sampling.median_interval(values)
    middle = sampling.median(values)
    assert (said != "") is (max(0.0, high - low - step) / 2 / middle > width)
    assert math.isfinite(sampling._width(samples, step))


def stepping(run: int, number: int) -> float:
    """What an H200 gave for a kernel of 1.4 µs: multiples of 32 ns, rounded to whole ones."""
    return [1344.0, 1376.0, 1377.0, 1408.0, 1408.0, 1409.0, 1440.0, 1472.0, 1504.0][number * 5 % 9]


def test_a_clock_that_steps_is_not_asked_for_less_than_a_step(clock):
    rounds = take(FakeTimer(stepping, 1e-6, clock))
    cold = [one.cold for one in rounds.samples[0]]
    low, high = sampling.median_interval(cold)
    assert high - low > 2 * 0.005 * sampling.median(cold)  # ±1.2 %, which no round narrows
    assert rounds.unstable == ["", ""] and len(cold) < 240


def test_a_restless_kernel_stays_unstable_however_the_clock_steps(clock):
    rounds = take(FakeTimer(lambda run, number: 32.0 * (40 + number * 7 % 30), 1e-6, clock))
    assert len(rounds.samples[0]) == 240 and all(said.startswith("99 % interval ±") for said in rounds.unstable)


@pytest.mark.parametrize("step", [16, 32, 100])
@pytest.mark.parametrize("off", [-1, 0, 1])
def test_the_step_of_a_clock_is_found(step, off):
    assert sampling.tick([step * number + off * (number % 2) for number in range(40, 60)]) == step


@given(st.lists(st.floats(1.0, 1e6), max_size=30))
def test_a_step_divides_every_reading(values):
    step = sampling.tick(values)
    assert step == 0 or all(abs(value - step * round(value / step)) <= 2.5 for value in values)


NO_STEP = ([], [5.0], [7.0] * 30, [1e3, 1001.0, 1002.0], [1.0, 10.0, 100.0, 1000.0, 1e4], [1e3, 1.4e3] * 20)


@pytest.mark.parametrize("values", NO_STEP)
def test_a_clock_that_does_not_step_has_no_tick(values):
    assert sampling.tick(values) == 0
