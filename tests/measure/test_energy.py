"""Energy a call, on a counter and a device that are made up."""

from __future__ import annotations

import itertools
import re

import pytest

from groundspeed.measure.energy import Energy, Loop, NoEnergy, derive, watch


class Board:
    """Draws ``watts`` while calls of ``call`` seconds run back to back; its counter moves every ``step`` seconds."""

    def __init__(self, watts=400.0, call=100e-6, step=0.02, host=0.0) -> None:
        self.watts, self.call, self.step, self.host = watts, call, step, host
        self.now = 0.0
        self.busy = 0.0
        self.naps = 0

    def issue(self, batch: int):
        self.now += batch * self.host
        self.busy = max(self.busy, self.now) + batch * self.call
        return Batch(self, self.busy)

    def read(self) -> int:
        self.now += 50e-6
        return int(self.now // self.step * self.step * self.watts * 1e3)

    def nap(self, seconds: float) -> None:
        self.naps += 1
        self.now += seconds


class Batch:
    def __init__(self, board: Board, at: float) -> None:
        self.board, self.at = board, at

    def query(self) -> bool:
        return self.board.now >= self.at

    def elapsed_time(self, other: Batch) -> float:
        return (other.at - self.at) * 1e3


def measured(board: Board, batch: int, hot_ns: float, longest: float = 0.0) -> Energy:
    loop = watch(lambda: board.issue(batch), board.read, batch, longest, lambda: board.now, board.nap)
    return derive(loop, hot_ns)


@pytest.mark.parametrize("step", [0.001, 0.02, 0.1])
@pytest.mark.parametrize("watts", [75.0, 690.0])
def test_joules_are_watts_times_seconds_whatever_the_counters_step(step, watts):
    found = measured(Board(watts=watts, step=step), 50, 100e3)
    assert found.watts == pytest.approx(watts, rel=0.01)
    assert found.nanojoules == pytest.approx(watts * 100e-6 * 1e9, rel=0.01)
    assert found.calls_per_second == pytest.approx(1e4, rel=0.001) and found.busy == pytest.approx(1.0, rel=0.001)
    assert found.seconds >= 1.0


def test_the_loop_runs_a_second_after_it_settled_and_no_longer_than_needed():
    board = Board(step=0.02)
    loop = watch(lambda: board.issue(50), board.read, 50, 0.0, lambda: board.now, board.nap)
    assert loop.steps[0][0] >= 0.3 and 1.0 <= loop.steps[-1][0] - loop.steps[0][0] < 1.05
    assert board.now < 1.5


def test_the_device_is_never_left_without_work():
    board = Board(call=100e-6)
    watch(lambda: board.issue(50), board.read, 50, 0.0, lambda: board.now, board.nap)
    assert board.busy > board.now


def test_a_call_that_the_host_takes_longer_to_issue_costs_its_idle_time_too():
    board = Board(watts=120.0, call=2e-6, host=10e-6)
    found = measured(board, 500, 2e3)
    # the host takes 5 ms for a batch, and some half a millisecond for reading and napping
    assert 80e3 < found.calls_per_second < 100e3
    assert found.busy == pytest.approx(2e-6 * found.calls_per_second)
    assert found.nanojoules == pytest.approx(120.0 / found.calls_per_second * 1e9, rel=0.02)
    assert re.search(r"1(19|20) W, 9\d,\d{3} calls/s, device busy (18|19) %", str(found))


def test_long_calls_are_waited_for():
    found = measured(Board(call=0.4), 1, 400e6, longest=8.0)
    assert found.nanojoules == pytest.approx(400.0 * 0.4 * 1e9, rel=0.02)


def test_a_counter_that_stands_still_gives_no_figure():
    board = Board()
    board.read = lambda: 7
    with pytest.raises(NoEnergy, match="moved 0 times"):
        measured(board, 50, 100e3)
    assert board.now == pytest.approx(5.0, abs=0.1)


def test_too_few_batches_give_no_figure():
    with pytest.raises(NoEnergy, match=r"1 batches of calls ended in 1\.00 s"):
        derive(Loop([(1.0, 100), (2.0, 900)], [(1.5, Batch(Board(), 1.5))], 1), 1.0)


@pytest.fixture
def bench():
    from groundspeed.measure.bench import Bench
    from groundspeed.measure.sampling import Budget
    from groundspeed.measure.timers.clock import ClockTimer

    return Bench("cpu", ClockTimer(), Budget(), energy=True)


class Gpu:
    def __init__(self, meter) -> None:
        self.energy_meter = lambda: meter


def test_a_row_has_the_figure_and_how_it_was_had_or_why_there_is_none(bench, monkeypatch):
    import dataclasses
    from types import SimpleNamespace

    from groundspeed.measure import case
    from groundspeed.measure.timers.base import Sample

    prepared = SimpleNamespace(run=lambda: None, contender=SimpleNamespace(name="torch_eager"))
    timed = SimpleNamespace(
        rounds=SimpleNamespace(samples=[[Sample(9.0, 5.0), Sample(9.0, 7.0), Sample(9.0, 6.0)]]), host_ns=lambda at: 3.0
    )
    asked = []

    def measure(run, meter, hot, host):
        asked.append((meter(), hot, host))
        return Energy(5.0, 100.0, 10.0, 1.0, 0.5)

    monkeypatch.setattr(case, "measure_energy", measure)
    metered = dataclasses.replace(bench, gpu=Gpu(lambda: 42))
    assert case._energy(metered, prepared, timed, 0) == (5.0, str(Energy(5.0, 100.0, 10.0, 1.0, 0.5)))
    assert asked == [(42, 6.0, 3.0)] and "energy" in metered.seconds

    def cannot(run, meter, hot, host):
        raise NoEnergy("it stood still")

    monkeypatch.setattr(case, "measure_energy", cannot)
    assert case._energy(metered, prepared, timed, 0) == (None, "energy: it stood still")
    why = (None, "energy: NVML has no energy counter of this GPU")
    assert case._energy(bench, prepared, timed, 0) == why
    assert case._energy(dataclasses.replace(bench, gpu=Gpu(None)), prepared, timed, 0) == why
    assert case._energy(dataclasses.replace(metered, energy=False), prepared, timed, 0) == (None, "")


def test_the_meter_is_nvmls_counter_or_none_where_the_gpu_has_none():
    from tests.measure.test_gpu_state import gpu

    class NVMLError_NotSupported(Exception):
        pass

    class NVMLError_GpuIsLost(Exception):
        pass

    def raises(error):
        def call(handle):
            raise error

        return call

    counter = itertools.count(100)
    meter = gpu(nvmlDeviceGetTotalEnergyConsumption=lambda handle: next(counter)).energy_meter()
    assert meter() < meter()
    assert gpu(nvmlDeviceGetTotalEnergyConsumption=raises(NVMLError_NotSupported())).energy_meter() is None
    with pytest.raises(NVMLError_GpuIsLost):
        gpu(nvmlDeviceGetTotalEnergyConsumption=raises(NVMLError_GpuIsLost())).energy_meter()
