"""A record of spans is cut into the samples that were launched, or refused."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundspeed.measure.case import kernel_times
from groundspeed.measure.timers.base import Sample
from groundspeed.measure.timers.train import FLUSH, MARK, SPIN, Span, TimerError, arrange, cut, length

SPINS = f"at::cuda::(anonymous namespace)::{SPIN}(long)"
kernels = st.lists(st.sampled_from(["relu", "Memset (Device)", "void gemm<float>", "Memcpy DtoD"]), max_size=4)


class Track:
    """Writes spans one after the other, each ``duration`` long with a gap before it."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.now = 0

    def add(self, name: str, duration: int = 10, gap: int = 2) -> None:
        start = self.now + gap
        self.now = start + duration
        self.spans.append(Span(name, start, self.now))

    def sample(self, cold: list[str], hot: list[str], spins: int = 1, stray: list[str] | None = None) -> None:
        for _ in range(spins):
            self.add(SPINS)
        for name in stray or []:
            self.add(name)
        self.add(FLUSH + "_kernel")
        for name in cold:
            self.add(name)
        self.add(MARK)
        for name in hot:
            self.add(name)


def expected(cold: list[str], hot: list[str]) -> Sample:
    def span(names: list[str]) -> float:
        return 12.0 * len(names) - 2 if names else 0.0

    return Sample(span(cold), span(hot), tuple(cold))


trains = st.lists(st.tuples(kernels, kernels, st.integers(1, 3)), max_size=8)


@settings(deadline=None)
@given(trains)
def test_any_train_is_cut_into_its_samples(pieces):
    track = Track()
    for cold, hot, spins in pieces:
        track.sample(cold, hot, spins)
    assert cut(track.spans) == [expected(cold, hot) for cold, hot, _ in pieces]


@settings(deadline=None)
@given(trains, st.integers(0, 2))
def test_spins_before_and_after_and_stray_work_change_nothing(pieces, spins):
    track = Track()
    for cold, hot, _ in pieces:
        track.sample(cold, hot, spins + 1, stray=["on another stream"])
    for _ in range(spins):
        track.add(SPINS)
    assert cut(track.spans) == [expected(cold, hot) for cold, hot, _ in pieces]


@settings(deadline=None, max_examples=200)
@given(trains.filter(lambda pieces: len(pieces) > 1), st.data())
def test_a_record_without_one_flush_or_mark_is_refused(pieces, data):
    track = Track()
    for cold, hot, _ in pieces:
        track.sample(cold, hot)
    probes = [i for i, span in enumerate(track.spans) if span.name.startswith((FLUSH, MARK))]
    del track.spans[data.draw(st.sampled_from(probes))]
    with pytest.raises(TimerError):
        cut(track.spans)


@settings(deadline=None)
@given(trains.filter(lambda pieces: len(pieces) > 1), st.data())
def test_a_record_without_a_spin_between_two_samples_is_refused(pieces, data):
    track = Track()
    for cold, hot, _ in pieces:
        track.sample(cold, hot)
    spins = [i for i, span in enumerate(track.spans) if SPIN in span.name]
    del track.spans[data.draw(st.sampled_from(spins[1:]))]
    with pytest.raises(TimerError, match="spin"):
        cut(track.spans)


def test_a_record_without_the_spin_and_the_flush_of_a_sample_is_refused():
    track = Track()
    for _ in range(2):
        track.sample(["a"], ["a"])
    first_mark, second_mark = (i for i, span in enumerate(track.spans) if span.name == MARK)
    joined = [s for i, s in enumerate(track.spans) if not (first_mark < i < second_mark and s.name != "a")]
    with pytest.raises(TimerError, match="mark"):
        cut(joined)


def test_spans_of_overlapping_kernels_count_from_the_first_start_to_the_last_end():
    overlapping = [Span("a", 100, 300), Span("b", 150, 200), Span("c", 160, 320)]
    assert length(overlapping) == 220.0 and length([]) == 0.0
    record = [Span(SPINS, 0, 1), Span(FLUSH, 2, 3), *overlapping, Span(MARK, 400, 401), Span("a", 500, 600)]
    (sample,) = cut(record)
    assert sample == Sample(220.0, 100.0, ("a", "b", "c")) and sample.each == (200.0, 50.0, 160.0)


def test_a_kernels_time_is_its_median_over_the_calls_that_launched_the_same():
    calls = [((1.0, 10.0), ("a", "b")), ((3.0, 30.0), ("a", "b")), ((2.0, 20.0), ("a", "b")), ((9.0,), ("a",))]
    samples = [Sample(99.0, 99.0, names, each=each) for each, names in calls]
    assert kernel_times(samples, ("a", "b")) == [2.0, 20.0]
    assert kernel_times([Sample(99.0, 99.0, ("a",))], ("a",)) == []
    assert kernel_times([Sample(99.0, 99.0)], ()) == []


# work on other streams


def two_samples(*others: Span) -> list[Span]:
    """Two trains in stream 7: spins of 100, flushes of 10, kernels of 20. The host's launches are counted by tens."""
    names = [SPINS, FLUSH, "a", MARK, "a"] * 2
    lengths = [100, 10, 20, 1, 20] * 2
    spans, now = [], 0
    for number, (name, duration) in enumerate(zip(names, lengths, strict=True)):
        spans.append(Span(name, now, now + duration, 7, 10 * number))
        now += duration + 1
    return sorted([*spans, *others], key=lambda span: span.start)


def test_work_on_another_stream_that_waits_its_turn_belongs_to_its_call():
    first, second = cut(two_samples(Span("b", 115, 133, 13, 21)))
    assert first == Sample(21.0, 20.0, ("a", "b")) and second == Sample(20.0, 20.0, ("a",))


def test_work_that_waits_for_nothing_is_its_calls_all_the_same():
    """It ran beside the spin, before the flush that its call came after."""
    first, second = cut(two_samples(Span("b", 40, 60, 13, 21)))
    assert first == Sample(112 + 20 - 40, 20.0, ("a", "b"), astray=111.0 - 40.0)
    assert second == Sample(20.0, 20.0, ("a",))


def test_work_that_nothing_waits_for_is_not_the_next_calls():
    """It began in its call and ran on past the mark, and past the next sample's spin."""
    first, second = cut(two_samples(Span("b", 120, 200, 13, 21), Span("c", 170, 300, 13, 41)))
    assert first.cold == 200 - 112 and first.astray == 200 - 133 and first.kernels == ("a", "b")
    assert first.hot == 300 - 135
    assert second == Sample(20.0, 20.0, ("a",))


def test_the_order_of_launches_is_asked_for_other_streams_alone():
    """On the train's own stream the device's order is the host's, whatever the numbers say."""
    plain = two_samples()
    assert cut([Span(s.name, s.start, s.end, s.stream, 0) for s in plain]) == cut(plain)


def test_an_empty_record_has_no_samples():
    assert cut([]) == []


# samples to rounds


@given(st.integers(1, 4), st.integers(0, 6), st.randoms())
def test_samples_land_at_their_runs_place_whatever_the_order(runs, rounds, rng):
    orders = [rng.sample(range(runs), runs) for _ in range(rounds)]
    samples = [Sample(float(index), 1.0, (f"k{index}",)) for order in orders for index in order]
    arranged = arrange(samples, orders)
    assert [[one.cold for one in row] for row in arranged] == [[float(i) for i in range(runs)]] * rounds


@pytest.mark.parametrize("count", [0, 3, 5])
def test_more_or_fewer_samples_than_launched_are_refused(count):
    with pytest.raises(TimerError, match=f"4 samples launched, {count} on the record"):
        arrange([Sample(1.0, 1.0, ("k",))] * count, [[0, 1], [1, 0]])


def test_work_that_is_missing_from_one_sample_alone_is_refused():
    full, no_cold, no_hot, empty = (
        Sample(1.0, 1.0, ("k",)),
        Sample(0.0, 1.0),
        Sample(1.0, 0.0, ("k",)),
        Sample(0.0, 0.0),
    )
    for lacking in (no_cold, no_hot, empty):
        with pytest.raises(TimerError, match="on the record of 2 of its 3 calls"):
            arrange([full, lacking, full], [[0]] * 3)
    assert arrange([empty] * 3, [[0]] * 3) == [[empty]] * 3  # a size of zero launches nothing


# the timer itself, on a device that only writes down what it was told


@pytest.fixture
def device(monkeypatch):
    """torch.cuda's stream as a track; the record is what was launched on it."""
    pytest.importorskip("triton", reason="the probes are Triton kernels")
    import torch

    from groundspeed.measure.timers import behind, cupti

    track = Track()
    sessions: list[int] = []

    def record(issue):
        track.spans.clear()
        issue()
        sessions.append(sum(span.name.startswith(FLUSH) for span in track.spans))
        if drops and sessions[-1] and drops.pop(0):
            del track.spans[-1]
        return list(track.spans)

    drops: list[bool] = []
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: track.add(SPINS, cycles))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(cupti, "record", record)
    timer = object.__new__(cupti.CuptiTimer)
    timer._blocker = object.__new__(behind.Blocker)
    timer._blocker._cycles = 1e-3

    class Probes:
        def __call__(self) -> None:
            track.add(FLUSH)

        def mark(self) -> None:
            track.add(MARK)

    timer._flush = Probes()
    return SimpleNamespace(timer=timer, track=track, sessions=sessions, drops=drops)


def launches(track: Track, *names: str, duration: int = 10):
    def run() -> None:
        for name in names:
            track.add(name, duration)

    return run


def test_what_the_timer_launches_is_what_is_read_back(device):
    runs = [launches(device.track, "a"), launches(device.track, "b", "c", duration=100), launches(device.track)]
    orders = [[0, 1, 2], [2, 1, 0], [1, 0, 2]]
    expected_row = [Sample(10.0, 10.0, ("a",)), Sample(202.0, 202.0, ("b", "c")), Sample(0.0, 0.0)]
    assert device.timer.collect(runs, orders, [1e3, 1e3, 1e3]) == [expected_row] * 3


def test_long_records_are_taken_in_pieces(device):
    rounds = device.timer.collect([launches(device.track, "a")] * 3, [[0, 1, 2]] * 1200, [1e3] * 3)
    assert len(rounds) == 1200 and device.sessions == [1500, 1500, 600]


def test_a_record_that_lost_something_is_taken_once_more(device):
    device.drops += [True, False]
    assert device.timer.collect([launches(device.track, "a")], [[0]] * 2, [1e3]) == [[Sample(10.0, 10.0, ("a",))]] * 2
    device.drops += [True, True]
    with pytest.raises(TimerError):
        device.timer.collect([launches(device.track, "a")], [[0]] * 2, [1e3])


def test_the_spin_outlasts_the_hosts_time_and_is_bounded(device):
    from groundspeed.measure.timers import cupti

    for host, least in ((1e3, 2e3), (50e3, 100e3), (1e9, 0)):
        device.timer.collect([launches(device.track, "a")], [[0]], [host])
        spin = [span.end - span.start for span in device.track.spans if SPIN in span.name][-1] / 1e-3
        assert least < spin <= cupti._MAX_SPIN_NS


def test_only_device_work_is_a_span():
    pytest.importorskip("triton", reason="the probes are Triton kernels")
    import torch

    from groundspeed.measure.timers.cupti import _spans

    cuda, cpu = torch.autograd.DeviceType.CUDA, torch.autograd.DeviceType.CPU

    def event(name, start, duration, device=cuda, annotation=False, stream=7, launch=3):
        return SimpleNamespace(
            name=lambda: name,
            start_ns=lambda: start,
            duration_ns=lambda: duration,
            device_resource_id=lambda: stream,
            correlation_id=lambda: launch,
            device_type=lambda: device,
            is_user_annotation=lambda: annotation,
        )

    events = [
        event("late", 50, 10),
        event("aten::relu", 1, 5, cpu),
        event("Stream Sync", 3, 9),
        event("Stream Wait Event", 4, 9),
        event("ProfilerStep", 2, 80, annotation=True),
        event("early", 10, 20),
        event("early and short", 10, 5, stream=13, launch=9),
    ]
    assert _spans(events) == [
        Span("early and short", 10, 15, 13, 9),
        Span("early", 10, 30, 7, 3),
        Span("late", 50, 60, 7, 3),
    ]
