"""What only shows while an implementation is timed: the timed calls' own outputs are judged, and one more trial."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import pytest

from groundspeed.measure import case as case_module
from groundspeed.measure import compiling, inputs
from groundspeed.measure.bench import Bench, Fault
from groundspeed.measure.case import Disturbed, measure_case
from groundspeed.measure.contender import open_contender
from groundspeed.measure.datasheet import Peak
from groundspeed.measure.incredible import no_time
from groundspeed.measure.judging import judge_case
from groundspeed.measure.referee import tools
from groundspeed.measure.referee.witness import Witnesses
from groundspeed.measure.timers.base import Sample
from groundspeed.operator import case
from tests.referee.court import (
    GALLERY,
    InstantTimer,
    bench,
    contenders,
    judged,
    measured,
    one_thread,
    timing_bench,
    without,
)

N = case("float32", N=1000)


def row(name: str, of: Bench | None = None):
    (only,) = measured(GALLERY, "double", (name,), N, of or timing_bench())
    return only


@pytest.fixture
def no_second_look(monkeypatch):
    monkeypatch.setattr(case_module, "judge_again", lambda *arguments: {})


def test_who_stops_working_after_some_calls_is_judged_again():
    found = row("torch_tires")
    assert (found.status, found.failure) == ("failed", "incorrect")
    # At which of the second look's calls it is tired depends on how many rounds there was time for.
    assert found.reason.startswith("right before it was timed, wrong since: ") and "tolerance: max" in found.reason


def test_who_stops_working_passes_when_nobody_looks_again(no_second_look):
    assert row("torch_tires").status == "ok"


def test_who_knows_the_timer_is_caught_by_what_the_timed_calls_returned():
    found = row("torch_knows_the_timer")
    assert (found.status, found.failure) == ("failed", "incorrect")
    assert found.reason.startswith("right before it was timed, wrong since: tolerance")


def test_who_knows_the_timer_passes_when_its_timed_outputs_are_dropped(monkeypatch):
    monkeypatch.setattr(case_module, "_watchable", lambda bench, verdict: False)
    assert row("torch_knows_the_timer").status == "ok"


WHILE_TIMED = {
    "torch_patches_while_timed": "time.monotonic_ns",
    "torch_hooks_the_timer": "groundspeed.measure.timers.clock.time",
    "torch_spoils_inputs": "input 'x'",
}


@pytest.mark.parametrize(("name", "what"), WHILE_TIMED.items())
def test_who_changes_what_is_shared_while_timed_alone_is_named(name: str, what: str):
    found = row(name)
    assert (found.status, found.failure) == ("failed", "incorrect")
    assert found.reason == f"changed during the timed rounds: {what}"
    assert not tools.replaced()


@pytest.mark.parametrize("name", WHILE_TIMED)
def test_nobody_is_accused_of_it_while_several_are_timed(name: str):
    with pytest.raises(Disturbed, match="changed during the timed rounds"):
        measured(GALLERY, "double", ("torch_eager", name), N, timing_bench())
    assert not tools.replaced()


@pytest.mark.parametrize("name", WHILE_TIMED)
def test_it_passes_when_nobody_looks_for_it(name: str, monkeypatch, no_second_look):
    monkeypatch.setattr(case_module, "disturbed", lambda judged: "")
    assert row(name).status == "ok"
    tools.put_back()


COMPILES_LATE = {"torch_grows_variants": "triton", "jax_compiles_late": "jax"}


@pytest.mark.parametrize(("name", "library"), COMPILES_LATE.items())
def test_who_compiles_while_timed_alone_is_named(name: str, library: str):
    pytest.importorskip(library)
    found = row(name)
    assert (found.status, found.failure) == ("failed", "error")
    assert found.reason.lower() == f"{library} compiled inside the timed region"


@pytest.mark.parametrize(("name", "library"), COMPILES_LATE.items())
def test_whose_kernel_it_was_is_known_or_each_is_timed_alone(name: str, library: str):
    pytest.importorskip(library)
    if library == "triton":
        eager, late = measured(GALLERY, "double", ("torch_eager", name), N, timing_bench())
        assert eager.status == "ok" and late.failure == "error"
    else:
        with pytest.raises(Disturbed, match="JAX compiled inside the timed region"):
            measured(GALLERY, "double", ("torch_eager", name), N, timing_bench())


@pytest.mark.parametrize(("name", "library"), COMPILES_LATE.items())
def test_who_compiles_passes_when_nobody_counts(name: str, library: str, monkeypatch):
    pytest.importorskip(library)
    monkeypatch.setattr(compiling, "since", lambda before, now: {})
    assert row(name).status == "ok"


def test_a_file_that_replaces_the_clock_when_imported_is_refused():
    (refused,) = contenders(GALLERY, "double", "torch_patches_when_imported")
    assert refused == Fault("incorrect", "its import changes time.perf_counter, which is not its alone")
    assert not tools.replaced()


def test_that_file_passes_when_nobody_looks():
    sys.modules.pop(f"{GALLERY.package}.double.torch_patches_when_imported", None)
    contender = open_contender(GALLERY, GALLERY.implementation("double", "torch_patches_when_imported"))
    assert tools.replaced() == ("time.perf_counter",)
    with one_thread():
        made = inputs.make_inputs("double", GALLERY.spec("double"), N, "cpu", 0)
        rules = without("tools_untouched")
        found = judge_case(bench(), "double", GALLERY.spec("double"), N, [contender], made, rules)
    assert not found.faults and not tools.replaced()


def test_faster_than_physics_is_impossible():
    """A right answer in a nanosecond: 8 kB at 8 TB/s, where the data sheet says 4.8."""
    instant = bench(peak=Peak(4.8e12, {}), l2_bytes=1000)
    found = row("torch_eager", instant)
    assert (found.status, found.failure) == ("failed", "impossible")
    assert found.reason == "7.00 TB/s, the datasheet's peak is 4.80"


def test_faster_than_physics_passes_where_no_peak_is_known():
    assert row("torch_eager", bench()).status == "ok"


class StillTimer(InstantTimer):
    """Says that everything took just so long, which is no time at all."""

    def __init__(self, ns: float) -> None:
        self._ns = ns

    def collect(self, runs, orders, host_ns):
        return [[Sample(self._ns, self._ns) for _ in runs] for _ in orders]


NO_TIMES = pytest.mark.parametrize("ns", [0.0, -5.0, math.inf])


@NO_TIMES
def test_no_time_at_all_is_impossible_on_every_device(ns: float):
    found = row("torch_eager", bench(timer=StillTimer(ns)))
    assert (found.status, found.failure) == ("failed", "impossible")
    assert found.reason.startswith("device_cold: a ") and f"{ns:g} ns" in found.reason


@NO_TIMES
def test_no_time_at_all_passes_when_nobody_looks(ns: float, monkeypatch):
    monkeypatch.setattr(case_module, "no_time", lambda *arguments: None)
    assert row("torch_eager", bench(timer=StillTimer(ns))).status == "ok"


def test_a_case_that_moves_nothing_may_take_no_time_on_the_device():
    spec = GALLERY.spec("double")
    nothing = {"device_cold": [0.0], "device_hot": [0.0]}
    assert no_time(spec, case("float32", N=0), nothing) is None
    assert no_time(spec, case("float32", N=0), {**nothing, "call": [0.0]}) is not None
    assert no_time(spec, N, nothing) is not None


class KernelTimer(InstantTimer):
    """Says which kernels each call launched."""

    def __init__(self, *kernels: str) -> None:
        self._kernels = kernels

    def collect(self, runs, orders, host_ns):
        return [[Sample(1e6, 1e6, self._kernels) for _ in runs] for _ in orders]


def owner_of(*kernels: str):
    """The honest implementation as one that may launch these kernels and no others."""
    (contender,) = contenders(GALLERY, "double", "torch_eager")
    return replace(contender, opened=replace(contender.opened, own_kernels=lambda: frozenset(kernels)))


def timed_row(contender, timer):
    with one_thread():
        (found,) = measure_case(bench(timer=timer), "double", GALLERY.spec("double"), N, [contender], "")
    return found


def test_a_librarys_kernel_among_ones_own_is_incorrect():
    timer = KernelTimer("twice", "Memset (Device)", "void at::native::vectorized_elementwise_kernel<4>(int)")
    found = timed_row(owner_of("twice"), timer)
    assert (found.status, found.failure) == ("failed", "incorrect")
    assert found.reason.startswith("own kernel: launches void at::native::vectorized_elementwise_kernel<4>")


def test_it_passes_when_nobody_asks_whose_kernels_ran(monkeypatch):
    timer = KernelTimer("sm90_xmma_gemm_f32f32_tn")
    assert timed_row(owner_of("twice"), timer).failure == "incorrect"
    monkeypatch.setattr(case_module, "foreign_kernel", lambda kernels, own: "")
    assert timed_row(owner_of("twice"), timer).status == "ok"


def test_ones_own_kernels_and_the_drivers_copies_are_fine():
    assert timed_row(owner_of("twice"), KernelTimer("Memset (Device)", "twice")).status == "ok"


def test_one_that_fails_does_not_fail_the_others():
    names = ("torch_eager", "torch_scribbles", "torch_writes_behind", "torch_stops_the_clock", "torch_sets_precision")
    found = judged(GALLERY, "double", names, N)
    assert set(found.faults) == set(names[1:])
    assert [one.contender.name for one in found.ready] == ["torch_eager"]


def test_witnesses_keep_one_round_of_each_drawn_evenly():
    kept_rounds = []
    for _ in range(400):
        calls = iter(range(1000))
        runs = Witnesses([lambda calls=calls: next(calls)])
        for _ in range(10):
            run = runs[0]
            run(), run()
        (outputs,) = runs.kept
        assert len(outputs) == 2 and outputs[1] == outputs[0] + 1
        kept_rounds.append(outputs[0] // 2)
    counts = [kept_rounds.count(one) for one in range(10)]
    assert min(counts) >= 15 and max(counts) <= 75  # 40 expected, standard deviation 6


def test_witnesses_that_are_only_counted_lose_nothing():
    runs = Witnesses([lambda: 1, lambda: 2])
    for index in range(2):
        runs[index]()
    for _ in range(100):
        assert [run() for run in runs] == [1, 2]
    assert runs.kept == [[1], [2]]


def test_witnesses_that_do_not_watch_hand_out_the_runs_themselves():
    run = lambda: 1  # noqa: E731
    runs = Witnesses([run], watch=False)
    assert runs[0] is run and runs.kept == [[]]
