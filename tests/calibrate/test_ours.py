"""Our own timers on a probe: what each pass yields, on timers that are scripted."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch")

from groundspeed.calibrate import ours
from groundspeed.calibrate.methods import CannotTime
from groundspeed.calibrate.probes import probes_of
from groundspeed.calibrate.schema import Ratio, Reading
from groundspeed.measure.timers.base import Fitted, Sample

PROBE = probes_of("cpu")[0]


class Scripted:
    """Reads ``cold(i)`` of run i and half of it hot."""

    sees_kernels = False

    def __init__(self, name: str, cold=lambda place: 1_000.0) -> None:
        self.name, self.cold = name, cold

    def fit(self, runs):
        return Fitted(self, ("graph: it cannot be captured: no",))

    def collect(self, runs, orders, host_ns):
        return [[Sample(self.cold(i), self.cold(i) / 2) for i in range(len(runs))] for _ in orders]


def found(timers: ours.Timers) -> dict[str, list]:
    return {
        method: list(read()) for method, read in ours.passes(timers, PROBE, lambda: None, "cpu", rounds=8, process=3)
    }


def test_the_main_timer_reads_two_sides_and_their_ratio():
    timers = ours.Timers(Scripted("cupti", lambda place: 1_000.0 * (1 + 0.02 * place)), {})
    cold, ratio, hot, hot_ratio = found(timers)["cupti"]
    assert (cold.method, cold.count, cold.value_ns, cold.process) == ("cupti", 16, 1_010.0, 3)
    assert (hot.method, hot.value_ns, hot.seconds) == ("cupti_hot", 505.0, 0.0) and cold.seconds > 0
    assert cold.spread == pytest.approx(10 / 1_010)
    assert [(one.metric, one.probe) for one in (ratio, hot_ratio)] == [
        ("device_cold", PROBE.name), ("device_hot", PROBE.name),
    ]  # fmt: skip
    assert ratio.log_ratio == pytest.approx(math.log(1.02)) == hot_ratio.log_ratio


def test_the_others_read_one_side_each_and_events_its_hot_call_too():
    timers = ours.Timers(Scripted("cupti"), {"events": Scripted("events"), "cupti_memset": Scripted("cupti")})
    by_method = found(timers)
    assert [(one.method, one.value_ns, one.count) for one in by_method["events"]] == [
        ("events", 1_000.0, 8), ("events_hot", 500.0, 8),
    ]  # fmt: skip
    assert [one.method for one in by_method["cupti_memset"]] == ["cupti_memset"]
    assert not any(isinstance(one, Ratio) for method in ("events", "cupti_memset") for one in by_method[method])


def test_a_graph_that_fell_back_gives_no_figure_under_a_graphs_name():
    timers = ours.Timers(Scripted("cupti"), {"graph": Scripted("graph")})
    passes = dict(ours.passes(timers, PROBE, lambda: None, "cpu", 8, 0))
    with pytest.raises(CannotTime, match="it cannot be captured: no"):
        list(passes["graph"]())


def test_samples_without_a_time_give_no_figure():
    with pytest.raises(CannotTime, match="half of its 2 samples are 0 ns"):
        ours.reading("cupti", "p", 0, [0.0, 0.0], 1.0)
    assert isinstance(ours.reading("cupti", "p", 0, [1.0, 2.0], 1.0), Reading)
