"""Hot device time from a CUDA graph of many launches: nothing between two kernels but the device's own hand-over.

Only ``device_hot`` comes from the graph. A cold call needs a flush before each launch and direct calls show the kernels
by name, so ``device_cold`` and the kernels are the direct timer's, from the same rounds. A replay writes its outputs
to the same memory each time, so nothing of it goes before the referee: what that sees are the direct calls.

Work that cannot be captured (a synchronisation inside the call, an allocation of another library) leaves the whole case
to the direct timer: one timer for all of a case.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from groundspeed.errors import kind_and_line
from groundspeed.measure.timers.base import Fitted, Run, Sample, Timer
from groundspeed.measure.timers.behind import PRELUDE_NS, Blocker, nothing

_GRAPH_NS = 2e6  # what a graph lasts: beside it the events and the graph's own start are nothing
_LAUNCHES = (2, 512)  # fewest and most in a graph
_SPIN_NS, _SPIN_NS_A_LAUNCH = 300_000, 2_000  # the host's time to issue one, generously
_LEAST_NS = 300.0  # no kernel is over sooner, not in a graph either


class CaptureError(Exception):
    """A call that cannot be captured, in the words of whoever refused."""


class GraphTimer:
    """Makes a timer of graphs for each case; ``direct`` times the cold calls, and all where capture fails."""

    name = "graph"
    sees_kernels = False  # one that has been fitted has its direct timer's eyes

    def __init__(self, device: torch.device, direct: Timer) -> None:
        self._direct = direct
        self._blocker = Blocker(device)
        self._broken: list[Any] = []  # torch's allocator keeps a pointer to a graph whose capture failed

    def fit(self, runs: Mapping[str, Run]) -> Fitted:
        direct = self._direct.fit(runs)
        graphs = []
        for name, run in runs.items():
            once = max((direct.timer.once(run) for _ in range(2)), key=_kernels_and_span)  # a record may be lost
            launches = _launches(once.hot)
            try:
                graph = capture(run, launches, self._broken)
                self._check_whole(direct.timer, graph, launches, once)
                graphs.append((graph, launches))
            except CaptureError as error:
                why = f"graph: {name} cannot be captured: {error}; the case is timed by {direct.timer.name}"
                return Fitted(direct.timer, (why, *direct.remarks))
        counts = ", ".join(f"{name} {launches}" for name, (_, launches) in zip(runs, graphs, strict=True))
        how = f"device_hot from graphs of so many launches: {counts}; device_cold by {direct.timer.name}"
        return Fitted(Replays(self._blocker, direct.timer, graphs), (how, *direct.remarks))

    def collect(
        self, runs: Sequence[Run], orders: Sequence[Sequence[int]], host_ns: Sequence[float]
    ) -> list[list[Sample]]:
        fitted = self.fit({str(number): run for number, run in enumerate(runs[:])})
        return fitted.timer.collect(runs, orders, host_ns)

    def once(self, call: Run) -> Sample:
        return self._direct.once(call)

    def _check_whole(self, direct: Timer, graph: Any, launches: int, once: Sample) -> None:
        """Raise CaptureError where a graph lacks work: what is launched past the current stream is not captured."""
        graph.replay()  # the first one uploads it
        found = 0
        for _ in range(2):  # records are dropped now and then
            found = len(direct.once(graph.replay).kernels)
            if direct.sees_kernels and found == launches * len(once.kernels):
                return
        if found:
            wanted = launches * len(once.kernels)
            raise CaptureError(f"its graph of {launches} calls holds {found} kernels, expected {wanted}")
        (span,), _ = self._blocker.timed(_SPIN_NS, nothing, [graph.replay])
        if span < launches * _LEAST_NS:
            raise CaptureError(f"its graph of {launches} calls is over in {span / 1e3:.2f} µs: it lacks their work")


class Replays:
    """The timer of one case: a graph of each run, and how many launches it holds."""

    name = "graph"

    def __init__(self, blocker: Blocker, direct: Timer, graphs: Sequence[tuple[Any, int]]) -> None:
        self._blocker, self._direct, self._graphs = blocker, direct, graphs
        self.sees_kernels = direct.sees_kernels

    def fit(self, runs: Mapping[str, Run]) -> Fitted:
        return Fitted(self)

    def collect(
        self, runs: Sequence[Run], orders: Sequence[Sequence[int]], host_ns: Sequence[float]
    ) -> list[list[Sample]]:
        direct = self._direct.collect(runs, orders, host_ns)
        hot = self.hot(orders)
        return [
            [replace(sample, hot=span) for sample, span in zip(samples, spans, strict=True)]
            for samples, spans in zip(direct, hot, strict=True)
        ]

    def hot(self, orders: Sequence[Sequence[int]]) -> list[list[float]]:
        """For each round the nanoseconds a launch of run i at place i, from the graphs alone."""
        rounds = []
        for order in orders:
            self._blocker.block(PRELUDE_NS)
            issued = {index: self._issue(index) for index in order}
            torch.cuda.synchronize()
            rounds.append([issued[index].spans()[0] / self._graphs[index][1] for index in sorted(issued)])
        return rounds

    def once(self, call: Run) -> Sample:
        return self._direct.once(call)

    def _issue(self, index: int) -> Any:
        graph, launches = self._graphs[index]
        return self._blocker.issue(_SPIN_NS + launches * _SPIN_NS_A_LAUNCH, nothing, [graph.replay])


def _kernels_and_span(sample: Sample) -> tuple[int, float]:
    return len(sample.kernels), sample.hot


def _launches(once_ns: float) -> int:
    fewest, most = _LAUNCHES
    return max(fewest, min(most, round(_GRAPH_NS / max(once_ns, 1.0))))


def capture(run: Run, launches: int, broken: list[Any]) -> Any:
    """A graph of so many calls. Raises CaptureError; the graph that failed then joins ``broken``.

    The calls are made on a stream of their own, because the default stream cannot be captured.
    """
    stream, graph, pool = torch.cuda.Stream(), torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle()
    stream.wait_stream(torch.cuda.current_stream())
    with _current(stream):
        for _ in range(2):
            run()  # what a stream needs once, such as the libraries' workspaces, must not be captured
        torch.cuda.synchronize()
        fault: Exception | None = None
        graph.capture_begin(pool=pool)
        try:
            for _ in range(launches):
                run()
        except Exception as error:
            fault = error
        try:
            graph.capture_end()
        except Exception as error:
            fault = fault or error
    torch.cuda.synchronize()  # raises when the device is lost: that is no fault of the capture
    if fault is None:
        return graph
    broken.append(graph)
    _recover(stream, pool)
    raise CaptureError(kind_and_line(fault)[:200]) from fault


@contextlib.contextmanager
def _current(stream: Any) -> Iterator[None]:
    """The stream that torch and, where it is loaded, CuPy launch on."""
    cupy = sys.modules.get("cupy")
    other = cupy.cuda.ExternalStream(stream.cuda_stream) if cupy else contextlib.nullcontext()
    with torch.cuda.stream(stream), other:
        yield


def _recover(stream: Any, pool: Any) -> None:
    """Do for a capture that failed what torch does only for one that ends well.

    Its allocator must stop allocating for it. Its generator of random numbers believes that it is being captured, and
    would refuse every draw from then on; a capture that ends well tells it otherwise.
    """
    with contextlib.suppress(RuntimeError):  # it had ended
        torch._C._cuda_endAllocateToPool(torch.cuda.current_device(), pool)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        graph.capture_begin()
        torch.cuda._sleep(0)
        graph.capture_end()
