"""Events behind a blocking kernel, and graphs, on a GPU that is a clock."""

from __future__ import annotations

import re

import pytest

from groundspeed.measure.timers.base import Fitted, Sample, sample_remarks
from tests.measure.fake_gpu import LAUNCH, RECORD, FakeGpu, install

pytest.importorskip("triton", reason="the probes are Triton kernels")
torch = pytest.importorskip("torch")

from groundspeed.measure.timers import choice, events, graph  # noqa: E402
from groundspeed.measure.timers.behind import Blocker, nothing  # noqa: E402

FLUSH_NS = 30_000.0


def same(row: list[Sample], *expected: Sample) -> bool:
    """Spans within a picosecond or so; the rest exactly."""
    close = all(
        one.cold == pytest.approx(other.cold, rel=1e-9) and one.hot == pytest.approx(other.hot, rel=1e-9)
        for one, other in zip(row, expected, strict=True)
    )
    return close and [(one.kernels, one.astray, one.waited) for one in row] == [
        (other.kernels, other.astray, other.waited) for other in expected
    ]


@pytest.fixture
def gpu(monkeypatch):
    """With a flush that takes its time on the device."""
    gpu = install(monkeypatch, FakeGpu())

    class Flush:
        def __init__(self, device) -> None: ...
        def __call__(self) -> None:
            gpu.launch(FLUSH_NS, "flush")

        def mark(self) -> None:
            gpu.launch(1_000.0, "mark")

    monkeypatch.setattr(events, "Flush", Flush)
    monkeypatch.setattr(events.time, "perf_counter_ns", lambda: gpu.host)
    return gpu


@pytest.fixture
def timer(gpu):
    return events.EventTimer(torch.device("cpu"))


def test_each_call_is_read_alone_cold_behind_a_flush_and_hot_behind_the_cold_one(gpu, timer):
    gpu.log.clear()
    runs = [lambda: gpu.launch(5_000.0), lambda: [gpu.launch(1_000.0) for _ in range(3)]]
    rounds = timer.collect(runs, [[0, 1], [1, 0]], [3_000.0, 9_000.0])
    assert all(same(row, Sample(5_000.0, 5_000.0), Sample(3_000.0, 3_000.0)) for row in rounds)
    first = gpu.log[gpu.log.index("spin") :]  # after the calls that look for work left behind
    assert first[:5] == ["spin", "spin", "flush", "work", "work"]


def test_the_host_is_ahead_of_a_call_that_takes_it_long_to_issue(gpu, timer):
    """Fifty launches of 2 µs each, and kernels of 1 µs: without a lead, the device would wait at each."""
    run = lambda: [gpu.launch(1_000.0) for _ in range(50)]  # noqa: E731
    (row,) = timer.collect([run], [[0]], [50 * LAUNCH])
    assert same(row, Sample(50_000.0, 50_000.0))


def test_a_lead_that_was_too_short_is_taken_again_with_a_longer_one(gpu, timer):
    run = lambda: [gpu.launch(1_000.0) for _ in range(400)]  # noqa: E731
    (row,) = timer.collect([run], [[0]], [1_000.0])  # it was said to take 1 µs, and takes 800
    assert same(row, Sample(400_000.0, 400_000.0))
    assert max(gpu.spins) > 2 * 400 * LAUNCH


def test_a_call_that_waits_for_the_device_is_kept_and_said_to(gpu, timer):
    def run():
        gpu.launch(1_000.0)
        gpu.synchronize()
        gpu.launch(1_000.0)

    (row,) = timer.collect([run], [[0]], [4_000.0])
    assert row[0].waited and row[0].cold > 2_000.0
    assert sample_remarks(row) == ["the device waited for the host inside 1 of 1 calls"]


def test_work_left_on_another_stream_is_waited_for_and_said(gpu, timer):
    def run():
        gpu.launch(5_000.0)
        gpu.launch_aside(300_000.0)

    (row,) = timer.collect([run], [[0]], [4_000.0])
    assert row[0].astray == pytest.approx(300_000.0, rel=0.05)
    assert row[0].cold == pytest.approx(5_000.0 + row[0].astray) == row[0].hot
    (said,) = sample_remarks(row)
    assert re.match(r"work on another stream lies up to \d+ µs outside its call; it is timed with it", said)


def test_an_interrupted_host_is_no_work_on_another_stream(gpu, timer, monkeypatch):
    pauses = iter([400_000.0])
    real = gpu.synchronize

    def synchronize():
        real()
        gpu.host += next(pauses, 0.0)

    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    (row,) = timer.collect([lambda: gpu.launch(5_000.0)], [[0]], [2_000.0])
    assert same(row, Sample(5_000.0, 5_000.0))


def test_what_an_empty_pair_reads_is_measured_and_said_and_subtracted_from_nothing(gpu, monkeypatch):
    real = torch.cuda.Event.record

    def slow(self):
        real(self)
        gpu.busy = max(gpu.host, gpu.busy) + 1_310.0
        self.at = gpu.busy

    monkeypatch.setattr(torch.cuda.Event, "record", slow)
    timer = events.EventTimer(torch.device("cpu"), reason="timed by events because of this")
    assert timer.empty_ns == pytest.approx(1_310.0)
    remarks = timer.fit({}).remarks
    assert remarks[0] == "timed by events because of this"
    assert "an empty pair of events reads 1.31 µs here; it is in every reading" in remarks[1]
    assert "whose kernels ran was not checked" in remarks[2]
    assert timer.once(lambda: gpu.launch(5_000.0)).hot == pytest.approx(5_000.0 + 1_310.0)


def test_a_block_is_bounded_and_counts_cycles(gpu):
    blocker = Blocker(torch.device("cpu"))
    blocker.block(1e12)
    assert gpu.spins[-1] == 50_000_000
    issued = blocker.issue(100_000.0, nothing, [nothing])
    assert issued.ahead and gpu.host < gpu.busy
    gpu.synchronize()
    assert issued.spans() == pytest.approx([0.0], abs=2 * RECORD)


# graphs


def test_hot_comes_from_graphs_and_cold_from_the_direct_timer(gpu, timer):
    runs = {"torch_eager": lambda: gpu.launch(1_000.0), "triton_row": lambda: gpu.launch(1e6)}
    fitted = graph.GraphTimer(torch.device("cpu"), timer).fit(runs)
    assert fitted.timer.name == "graph"
    assert fitted.remarks[0].startswith("device_hot from graphs of so many launches: torch_eager 512, triton_row 2;")
    assert any("empty pair" in remark for remark in fitted.remarks)
    rounds = fitted.timer.collect(list(runs.values()), [[0, 1], [1, 0]], [2_000.0, 2_000.0])
    for small, large in rounds:
        assert small.cold == pytest.approx(1_000.0) and small.hot == pytest.approx(1_000.0 + 5_000.0 / 512)
        assert large.cold == pytest.approx(1e6) and large.hot == pytest.approx(1e6 + 2_500.0)


def test_a_call_that_cannot_be_captured_leaves_the_whole_case_to_the_direct_timer(gpu, timer, monkeypatch):
    monkeypatch.setattr(
        torch._C, "_cuda_endAllocateToPool", lambda device, pool: gpu.log.append("forgot"), raising=False
    )

    def stubborn():
        if gpu.capturing is not None:
            raise RuntimeError("operation not permitted when stream is capturing\nlong story")
        gpu.launch(1_000.0)

    graphs = graph.GraphTimer(torch.device("cpu"), timer)
    fitted = graphs.fit({"torch_eager": lambda: gpu.launch(1_000.0), "torch_sync": stubborn})
    assert fitted.timer is timer and "forgot" in gpu.log and gpu.capturing is None
    assert gpu.captured == [512, None, 1], "a capture that ends well must follow: torch's generator waits for it"
    assert fitted.remarks[0] == (
        "graph: torch_sync cannot be captured: RuntimeError: operation not permitted when stream is capturing; "
        "the case is timed by events"
    )
    assert graphs._broken, "the allocator would follow a pointer to what is gone"


def test_a_graph_without_the_calls_work_is_refused(gpu, timer):
    """It launches past the stream that is captured, as a library with a stream of its own does."""

    def past():
        capturing, gpu.capturing = gpu.capturing, None
        gpu.launch(1_000.0)
        gpu.capturing = capturing

    fitted = graph.GraphTimer(torch.device("cpu"), timer).fit({"cupy_raw": past})
    assert fitted.timer is timer and "it lacks their work" in fitted.remarks[0]


@pytest.mark.parametrize(("seen", "refused"), [(1024, ""), (1022, "holds 1022 kernels, expected 1024"), (0, "")])
def test_a_graph_is_counted_where_the_direct_timer_sees_kernels(gpu, seen, refused):
    class Seeing:
        name, sees_kernels = "cupti", True

        def fit(self, runs):
            return Fitted(self)

        def once(self, call):
            before = len(gpu.log)
            call()
            launched = gpu.log[before:]
            graphs = any(name.startswith("graph") for name in launched)
            kernels = ("k",) * (seen if graphs else len(launched))
            return Sample(3_000.0, 3_000.0, kernels)

    run = lambda: [gpu.launch(1_500.0) for _ in range(2)]  # noqa: E731
    fitted = graph.GraphTimer(torch.device("cpu"), Seeing()).fit({"torch_eager": run})
    assert (refused in fitted.remarks[0]) if refused else fitted.timer.name == "graph"


def test_only_bare_runs_are_captured(gpu, timer):
    """A replay writes to the same memory each time: nothing of it may be kept for the referee."""
    from groundspeed.measure.referee.witness import Witnesses

    witnesses = Witnesses([lambda: gpu.launch(1_000.0)])
    fitted = graph.GraphTimer(torch.device("cpu"), timer).fit({"torch_eager": witnesses[:][0]})
    assert witnesses.kept == [[]]
    fitted.timer.collect(witnesses, [[0]] * 3, [2_000.0])
    assert len(witnesses.kept[0]) == 2, "the cold and the hot call of one round, and no replay"


# which one


class Cupti:
    name, sees_kernels = "cupti", True
    why: str | None = None

    def __init__(self, device) -> None: ...
    def fault(self):
        return self.why


@pytest.mark.parametrize(
    ("asked", "why", "name", "direct"),
    [
        ("", None, "cupti", ""),
        ("cupti", None, "cupti", ""),
        ("events", None, "events", ""),
        ("graph", None, "graph", "cupti"),
        ("", "it recorded 0 of 3 kernels", "events", ""),
        ("graph", "it recorded 0 of 3 kernels", "graph", "events"),
    ],
)
def test_events_stand_in_where_cupti_does_not_record(gpu, monkeypatch, asked, why, name, direct):
    monkeypatch.setattr(choice, "CuptiTimer", Cupti)
    monkeypatch.setattr(Cupti, "why", why)
    chosen = choice.gpu_timer(asked, torch.device("cpu"))
    assert chosen.name == name
    if direct:
        assert chosen._direct.name == direct
    if why and name == "events":
        assert chosen.fit({}).remarks[0] == f"timed by events because CUPTI cannot be used: {why}"


def test_cupti_is_tried_twice_before_it_is_given_up(gpu, monkeypatch):
    from groundspeed.measure.timers import cupti
    from groundspeed.measure.timers.train import FLUSH, MARK, SPIN, Span

    whole = [Span(f"x::{SPIN}", 0, 1), Span(FLUSH, 2, 3), Span(MARK, 4, 5)]
    answers = [whole[:2], whole]
    timer = object.__new__(cupti.CuptiTimer)
    monkeypatch.setattr(cupti, "record", lambda issue: answers.pop(0))
    assert timer.fault() is None and not answers
    answers += [[], whole[:1]]
    assert timer.fault() == "it recorded 1 of 3 kernels"

    def refuses(issue):
        raise RuntimeError("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES\nmore")

    monkeypatch.setattr(cupti, "record", refuses)
    assert timer.fault() == "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
