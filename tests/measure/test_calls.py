"""Host time, peak memory, the clock, and what is said of the environment: the parts that a CPU can show."""

from __future__ import annotations

import gc
import time

import pytest

from groundspeed.measure import calls

torch = pytest.importorskip("torch")

KIB = 1024


def test_each_call_is_timed_until_done_and_until_issued_in_alternating_order():
    order: list[str] = []
    runs = [lambda name=name: order.append(name) or time.sleep(0.002) for name in "ab"]
    samples = calls.call_samples(runs, 3, "cpu")
    assert order == list("abbaab")
    assert [len(run) for run in samples] == [3, 3]
    assert all(2e6 <= host <= call < 1e9 for run in samples for call, host in run)


def test_no_round_begins_after_the_time_allowed_but_three_are_taken():
    assert len(calls.call_samples([lambda: time.sleep(0.01)], 50, "cpu", seconds=0.0)[0]) == calls.LEAST_ROUNDS
    assert len(calls.call_samples([lambda: time.sleep(0.01)], 50, "cpu", seconds=0.1)[0]) < 20
    assert len(calls.call_samples([lambda: None], 5, "cpu")[0]) == 5


@pytest.mark.parametrize(
    ("run", "blocks"),
    [
        (lambda x: x + x, 1),
        (lambda x: (x + x) + x, 2),  # the first sum lives until the second is there
        (lambda x: torch.empty(0), 0),
        (lambda x: x, 0),
        (lambda x: [x + x for _ in range(3)], 3),
        (lambda x: [(x + x).sum() for _ in range(3)], 1),  # each is freed before the next is made
    ],
)
def test_peak_memory_is_what_a_call_holds_at_once_above_its_inputs(run, blocks):
    x = torch.ones(64 * KIB)
    size = x.numel() * x.element_size()
    assert abs(calls.peak_memory(lambda: run(x), "cpu") - blocks * size) < KIB


def test_peak_memory_does_not_count_what_was_freed_from_before():
    held = [torch.ones(256 * KIB)]

    def run():
        held.clear()
        return torch.ones(64 * KIB)

    # torch's CPU profiler may not see blocks from before it began: then what is new counts, and never what was old.
    assert calls.peak_memory(run, "cpu") <= 4 * 64 * KIB + KIB


@pytest.mark.parametrize("enabled", [True, False])
def test_quiet_stops_collections_and_puts_back_what_was(enabled):
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with pytest.raises(ValueError, match="inside"), calls.quiet():
            assert not gc.isenabled()
            raise ValueError("inside")
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_the_clock_times_each_run_in_the_order_asked_for_and_cold_before_hot():
    from groundspeed.measure.timers.clock import ClockTimer

    order: list[int] = []

    def slow_when_first(index: int, seconds: float):
        def run():
            order.append(index)
            time.sleep(seconds if order.count(index) % 2 else 0.001)

        return run

    rounds = ClockTimer().collect([slow_when_first(0, 0.02), slow_when_first(1, 0.03)], [[1, 0], [0, 1]], [1.0, 1.0])
    assert order == [1, 1, 0, 0, 0, 0, 1, 1]
    for row in rounds:
        assert row[0].cold >= 2e7 and row[1].cold >= 3e7
        assert all(1e6 <= one.hot < one.cold and one.kernels == () for one in row)


def test_the_caches_are_emptied_before_each_cold_call_and_not_before_the_hot_one():
    from groundspeed.measure.timers.clock import _CACHE_BYTES, ClockTimer

    timer = ClockTimer()
    assert timer._evict.numel() * timer._evict.element_size() == _CACHE_BYTES
    order: list[str] = []

    class Evict:
        def sum(self) -> None:
            order.append("read")

    timer._evict = Evict()
    timer.collect([lambda: order.append("run")], [[0], [0]], [1.0])
    assert order == ["read", "run", "run"] * 2


def test_the_output_is_freed_outside_the_interval():
    from groundspeed.measure.timers.clock import ClockTimer

    class SlowToDie:
        def __del__(self):
            time.sleep(0.05)

    (row,) = ClockTimer().collect([SlowToDie], [[0]], [1.0])
    assert row[0].cold < 5e7 and row[0].hot < 5e7


def test_the_environment_of_a_cpu_names_what_the_numbers_depend_on():
    from groundspeed.measure.environment import describe, free_memory

    found = describe("cpu")
    assert found.device == "cpu" and found.torch == torch.__version__ and found.threads == torch.get_num_threads()
    assert found.python and found.os and found.device_name and found.groundspeed
    assert found.memory_bytes >= free_memory("cpu") > 0
    assert (found.driver, found.uuid_hash, found.capability, found.power_cap_w) == ("", "", "", 0.0)


def test_a_bench_of_the_cpu_uses_the_clock_and_no_ceilings(monkeypatch, tmp_path):
    from groundspeed.errors import UserError
    from groundspeed.measure.device import make_bench, session_ceilings
    from groundspeed.measure.protocol import Job
    from groundspeed.tree import Tree
    from tests.core.scratch import job, make_tree

    asked = job(make_tree(tmp_path, {"double": {}}), seconds=0.125)
    bench = make_bench(asked, lambda *phase: None)
    assert (bench.device, bench.timer.name, bench.gpu, bench.peak) == ("cpu", "clock", None, None)
    assert bench.budget.seconds == 0.125
    assert session_ceilings(asked, Tree(tmp_path).spec("double"), bench.timer) is None
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with pytest.raises(UserError, match="TRITON_INTERPRET is set: an interpreted kernel is never timed"):
        make_bench(asked, lambda *phase: None)
    checking = Job("double", "", "", "cpu", (), (), check_only=True)
    assert make_bench(checking, lambda *phase: None).device == "cpu"


def test_phases_are_announced_with_their_limit_and_their_time_is_split():
    from groundspeed.measure.bench import PHASE_LIMITS, Bench
    from groundspeed.measure.sampling import Budget
    from groundspeed.measure.timers.clock import ClockTimer

    told: list[tuple[str, float, str]] = []
    bench = Bench("cpu", ClockTimer(), Budget(), begin=lambda *phase: told.append(phase))
    for _ in range(2):
        with bench.phase("prepare", "torch_add"):
            time.sleep(0.01)
    with pytest.raises(ValueError, match="x"), bench.phase("time"):
        raise ValueError("x")
    assert told == [("prepare", PHASE_LIMITS["prepare"], "torch_add")] * 2 + [("time", PHASE_LIMITS["time"], "")]
    assert bench.seconds["prepare"] >= 0.02 and "time" in bench.seconds


def test_what_an_exception_means():
    from groundspeed.build import BuildError
    from groundspeed.measure.bench import as_fault

    known = [
        (BuildError("a.cu: nvcc: error: one\nerror: two"), "build", "a.cu: nvcc: error: one\nerror: two"),
        (torch.OutOfMemoryError("CUDA out of memory"), "oom", "OutOfMemoryError: CUDA out of memory"),
        (MemoryError(), "oom", "MemoryError"),
        (type("OutOfMemoryError", (Exception,), {})("cupy"), "oom", "OutOfMemoryError: cupy"),
        (ValueError("one\ntwo"), "error", "ValueError: one"),
        (AssertionError(), "error", "AssertionError"),
    ]
    for error, failure, reason in known:
        fault = as_fault(error, "cpu")
        assert (fault.failure, fault.reason) == (failure, reason)
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 46)
    assert as_fault(caught.value, "cpu").failure == "oom"


def test_a_case_that_does_not_fit_says_what_it_needs(tmp_path):
    from groundspeed.measure.bench import memory_shortage
    from groundspeed.operator import Case
    from groundspeed.tree import Tree
    from tests.core.scratch import make_tree

    spec = Tree(make_tree(tmp_path, {"double": {}})).spec("double")
    one = Case.of("float32", {"N": 1 << 20})
    needed = (8 << 20) * 5 + (16 << 20) * 2
    assert memory_shortage(spec, one, needed) is None
    assert memory_shortage(spec, one, needed - 1) == "needs about 0.1 GB, 0.1 GB is free"


def test_however_slow_a_call_is_the_gate_has_enough_of_it():
    """It took three of a call over 25 ms, and passed a change that made calls so slow without having compared them."""
    from groundspeed.gate.series import LEAST_SAMPLES

    assert calls.LEAST_ROUNDS >= LEAST_SAMPLES
