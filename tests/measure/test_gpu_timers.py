"""The three timers and the energy meter on a GPU, against what is known of a few calls."""

from __future__ import annotations

import functools
import math

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.gpu

MIB = 1 << 20
ROUNDS = 15


@functools.cache
def device():
    return torch.device("cuda", torch.cuda.current_device())


@functools.cache
def timer(name: str):
    from groundspeed.measure.timers.choice import gpu_timer

    made = gpu_timer(name, device())
    assert made.name == (name or "cupti")
    return made


def medians(name: str, run) -> tuple[float, float]:
    """Cold and hot median in ns, by the timer fitted to the run."""
    from groundspeed.analysis.stats import median

    for _ in range(3):
        run()
    fitted = timer(name).fit({"it": run})
    rounds = fitted.timer.collect([run], [[0]] * ROUNDS, [20_000.0])
    return median([row[0].cold for row in rounds]), median([row[0].hot for row in rounds])


def relu(size: int):
    x = torch.randn(size // 4, device="cuda")
    return lambda: torch.relu(x)


def test_the_default_is_cupti_and_it_records():
    assert timer("").name == "cupti" and timer("").fault() is None


def test_events_are_near_cupti_for_a_large_call_and_above_it():
    cupti, _ = medians("cupti", relu(64 * MIB))
    events, _ = medians("events", relu(64 * MIB))
    empty = timer("events").empty_ns
    assert abs(events - empty - cupti) < 3_000, (cupti, events, empty)


def test_what_an_empty_pair_reads_is_a_microsecond_or_so():
    assert 200 < timer("events").empty_ns < 10_000


@pytest.mark.parametrize("size", [64 * 1024, 4 * MIB, 64 * MIB])
def test_a_graph_is_not_slower_than_events_say(size):
    _, events = medians("events", relu(size))
    _, graph = medians("graph", relu(size))
    assert 300 < graph <= 1.02 * events, (graph, events)


def test_a_graph_holds_every_kernel_of_its_calls():
    x = torch.randn(1024, 1024, device="cuda")
    fitted = timer("graph").fit({"chain": lambda: torch.softmax(torch.relu(x), 1).sum()})
    assert fitted.timer.name == "graph", fitted.remarks
    assert "device_cold by cupti" in fitted.remarks[0]


def test_a_call_that_waits_for_the_device_cannot_be_captured_and_the_device_is_well_after():
    x = torch.randn(1024, device="cuda")
    fitted = timer("graph").fit({"asks": lambda: x.sum().item()})
    assert fitted.timer.name == "cupti" and "asks cannot be captured" in fitted.remarks[0]
    assert torch.equal(torch.relu(x), x.clamp(min=0))
    assert torch.randn(1000, device="cuda").std() > 0.5, "torch's generator no longer draws"
    again = timer("graph").fit({"relu": relu(4 * MIB)})
    assert again.timer.name == "graph", again.remarks


def test_events_say_when_a_call_waits_for_the_device():
    x = torch.randn(1024, device="cuda")
    rounds = timer("events").collect([lambda: x.sum().item()], [[0]], [20_000.0])
    assert rounds[0][0].waited


@pytest.mark.parametrize("name", ["cupti", "events"])
def test_work_left_on_another_stream_is_timed_with_its_call_and_said(name):
    x, side = torch.randn(4096, 4096, device="cuda"), torch.cuda.Stream()

    def run():
        torch.relu(x)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(4):
                x @ x

    for _ in range(3):
        run()
    alone, _ = medians("cupti", lambda: torch.relu(x))
    (row,) = timer(name).collect([run], [[0]], [100_000.0])
    assert row[0].astray > 100_000 and row[0].cold > alone + 0.9 * row[0].astray


def test_a_call_that_joins_its_other_stream_is_one_span_and_nothing_is_astray():
    x, side = torch.randn(4096, 4096, device="cuda"), torch.cuda.Stream()

    def run():
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x @ x
        torch.relu(x)
        torch.cuda.current_stream().wait_stream(side)

    for _ in range(3):
        run()
    rounds = timer("cupti").collect([run], [[0]] * 3, [60_000.0])
    assert all(row[0].astray == 0 and len(row[0].kernels) >= 2 for row in rounds)
    product, _ = medians("cupti", lambda: x @ x)
    assert all(row[0].cold > 0.8 * product for row in rounds)


def test_without_cupti_events_time_and_say_why(monkeypatch):
    from groundspeed.measure.timers import choice, cupti

    monkeypatch.setattr(cupti, "record", lambda issue: [])
    chosen = choice.gpu_timer("", device())
    assert chosen.name == "events"
    assert chosen.fit({}).remarks[0] == ("timed by events because CUPTI cannot be used: it recorded 0 of 3 kernels")


def test_ceilings_do_not_depend_on_which_timer_measures_them():
    from groundspeed.measure.ceilings import measure_ceilings

    by_cupti, by_events = (measure_ceilings((), False, timer(name)) for name in ("cupti", "events"))
    for kind in ("copy", "read", "write"):
        assert math.isclose(getattr(by_cupti, kind), getattr(by_events, kind), rel_tol=0.03), kind


def test_the_ceiling_of_an_operators_own_mix_is_what_a_kernel_of_that_mix_reaches():
    """The model puts it together from copy, read and write: docs/measuring.md."""
    from groundspeed.analysis.roofline import memory_time
    from groundspeed.measure.ceilings import measure_ceilings, mix_rates

    ceilings, mixes = measure_ceilings((), False, timer("cupti")), mix_rates(timer("cupti"))
    for name, measured in mixes.items():
        reads, writes = map(int, name.split(":"))
        modelled = (reads + writes) * 1e18 / memory_time(ceilings, reads * 10**9, writes * 10**9)
        assert math.isclose(modelled, measured, rel_tol=0.04), (name, modelled, measured)


def test_a_memset_flush_empties_the_cache_too():
    from groundspeed.measure.timers.cupti import CuptiTimer
    from groundspeed.measure.timers.probes import MemsetFlush

    run = relu(16 * MIB)
    run()
    written = CuptiTimer(device(), MemsetFlush(device())).collect([run], [[0]] * ROUNDS, [20_000.0])
    assert all(row[0].cold > row[0].hot for row in written[2:])


def test_energy_is_positive_and_power_lies_between_idle_and_the_cap():
    from groundspeed.measure.energy import measure_energy
    from groundspeed.measure.environment import gpu_handle

    gpu = gpu_handle("cuda")
    meter = gpu.energy_meter()
    if meter is None:
        pytest.skip("NVML has no energy counter of this GPU")
    idle = gpu.read().power_w
    x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    hot = medians("cupti", lambda: x @ x)[1]
    found = measure_energy(lambda: x @ x, meter, hot, 10_000.0)
    assert found.nanojoules > 0 and found.seconds >= 1.0
    assert 0.5 * idle < found.watts <= 1.1 * gpu.power_cap_w(), (idle, found.watts)
    assert found.busy > 0.5
    # back to back is at most what one call takes alone, and heat may make it slower
    assert 0.3e9 / hot < found.calls_per_second < 1.2e9 / hot


def test_more_work_takes_more_energy():
    from groundspeed.measure.energy import measure_energy
    from groundspeed.measure.environment import gpu_handle

    meter = gpu_handle("cuda").energy_meter()
    if meter is None:
        pytest.skip("NVML has no energy counter of this GPU")
    joules = []
    for size in (16 * MIB, 64 * MIB):
        run = relu(size)
        joules.append(measure_energy(run, meter, medians("cupti", run)[1], 10_000.0).nanojoules)
    assert joules[1] > 1.5 * joules[0]
