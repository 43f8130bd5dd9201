"""What one rank times on a GPU that is a clock, and what the worker makes of several ranks' times."""

from __future__ import annotations

import pytest

pytest.importorskip("triton", reason="the flush is a Triton kernel")
torch = pytest.importorskip("torch")

from groundspeed.measure import calls  # noqa: E402
from groundspeed.measure.ranks import case, trains  # noqa: E402
from groundspeed.measure.ranks.case import CrewTimer, slowest  # noqa: E402
from groundspeed.measure.timers import probes  # noqa: E402
from groundspeed.measure.timers.base import Sample  # noqa: E402
from groundspeed.records import Environment  # noqa: E402
from tests.measure.fake_gpu import RECORD, FakeGpu, install  # noqa: E402

FLUSH, BARRIER = 30_000.0, 12_000.0


@pytest.fixture
def gpu(monkeypatch):
    gpu = install(monkeypatch, FakeGpu())
    monkeypatch.setattr(probes, "Flush", lambda device: lambda: gpu.launch(FLUSH, "flush"))
    monkeypatch.setattr(trains.distributed, "all_reduce", lambda tensor: gpu.launch(BARRIER, "barrier"))
    return gpu


@pytest.fixture
def timed(gpu):
    made = trains.EventTrains(torch.device("cpu"))
    gpu.log.clear()
    return made


def test_a_call_is_timed_between_barriers_cold_behind_a_flush_and_hot_behind_the_cold_one(gpu, timed):
    runs = [lambda: gpu.launch(5_000.0, "one"), lambda: [gpu.launch(1_000.0, "two") for _ in range(3)]]
    rounds = timed.collect(runs, [[0, 1], [1, 0]], [400_000.0, 400_000.0])
    for row in rounds:
        assert [round(one.cold) for one in row] == [round(one.hot) for one in row] == [5_000, 3_000]
        assert not any(one.waited for one in row)
    train = ["spin", "flush", "barrier", "one", "barrier", "one"]
    assert gpu.log[: 1 + len(train)] == ["spin", *train]
    assert gpu.log.count("barrier") == 8


def test_a_device_that_waited_for_its_host_says_so(gpu, timed):
    (row,) = timed.collect([lambda: gpu.launch(5_000.0, host=300_000.0)], [[0]], [100_000.0])
    assert row[0].waited and row[0].hot > 5_000


def test_a_call_that_does_nothing_reads_what_a_pair_of_events_does(gpu, timed):
    assert timed.floor(3) == [0.0, 0.0, 0.0] and RECORD > 0


def test_host_times_begin_when_all_hosts_are_there(gpu, timed, monkeypatch):
    monkeypatch.setattr(calls.time, "perf_counter_ns", lambda: gpu.host)
    monkeypatch.setattr(calls, "synchronize", lambda device: gpu.synchronize())
    (samples,) = trains.call_rounds([lambda: gpu.launch(50_000.0)], 2, "cuda")
    assert samples[1] == (62_000.0, 2_000.0)  # the barrier's 12 µs are in front: here it is the device's


def test_a_sample_is_the_slowest_rank_s():
    assert slowest([Sample(5.0, 2.0), Sample(4.0, 3.0, waited=True)]) == Sample(5.0, 3.0, waited=True)


class Crew:
    """Two ranks that need a lead of so much."""

    world = 2

    def __init__(self, needed: float) -> None:
        self.needed, self.spins = needed, []

    def ask(self, order, orders, spins, limit):
        self.spins.append(spins[0])
        late = spins[0] < self.needed
        return [[[Sample(7.0 + rank, 5.0 - rank, waited=late)] for _ in orders] for rank in range(2)]


def timer(crew: Crew, device: str) -> CrewTimer:
    environment = Environment(device=device, device_name="", python="", os="")
    return CrewTimer(case.Table(crew, None, environment, None, lambda *of: None), ["torch_eager"])  # type: ignore[arg-type]


def test_rounds_of_all_ranks_are_taken_again_with_a_longer_lead_until_no_device_waited():
    crew = Crew(needed=700_000.0)
    found = timer(crew, "cuda").collect([None], [[0]] * 3, [50_000.0])
    assert found == [[Sample(8.0, 5.0)]] * 3
    assert len(crew.spins) == 2 and crew.spins[0] < crew.needed <= crew.spins[1]
    hopeless = Crew(needed=1e12)
    assert timer(hopeless, "cuda").collect([None], [[0]], [1.0])[0][0].waited and len(hopeless.spins) == 3


def test_the_timer_has_the_name_of_what_times():
    assert timer(Crew(0.0), "cuda").name == "events" and timer(Crew(0.0), "cpu").name == "clock"
