"""What the machinery itself takes: an empty kernel, a launch, two events, two readings of the clock. Nanoseconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from time import perf_counter_ns

from groundspeed.analysis.stats import median
from groundspeed.measure.timers.base import Timer

COSTS = {
    "empty_kernel": "device time of an empty kernel",
    "hand_over": "from an empty kernel's end to the start of the one behind it",
    "launch": "host time to launch an empty kernel",
    "launch_and_wait": "host time to launch an empty kernel and wait for it",
    "event_pair": "what two events with nothing between them read",
    "clock_pair": "what two readings of the clock with nothing between them read",
    "least_call": "a call of torch on one element",
}
_LAUNCHES = 100  # far fewer than the launch queue holds
_REPEATS = 7
_LEAD_NS = 2_000_000


def costs(device: str, main: Timer, beside: Mapping[str, Timer]) -> dict[str, float]:
    """Costs by name; those that the device or the timers at hand cannot tell are left out."""
    if device != "cuda":
        return {"clock_pair": _clock_pair(), "least_call": _least_call()}
    found = {"launch": _launch(), "launch_and_wait": _launch_and_wait()}
    events = beside.get("events", main)
    if hasattr(events, "empty_ns"):
        found["event_pair"] = float(events.empty_ns)
    return found | (_empty_kernels() if main.name == "cupti" else {})


def _empty_kernels() -> dict[str, float]:
    import torch

    from groundspeed.measure.timers.behind import Blocker
    from groundspeed.measure.timers.cupti import record

    blocker = Blocker(torch.device("cuda", torch.cuda.current_device()))

    def issue() -> None:
        blocker.block(_LEAD_NS)
        for _ in range(_LAUNCHES):
            torch.cuda._sleep(0)

    spans = record(issue)[1:]  # the first is the lead
    gaps = [float(later.start - earlier.end) for earlier, later in pairwise(spans)]
    return {"empty_kernel": median([float(one.end - one.start) for one in spans]), "hand_over": median(gaps)}


def _launch() -> float:
    import torch

    def launches() -> float:
        torch.cuda.synchronize()
        start = perf_counter_ns()
        for _ in range(_LAUNCHES):
            torch.cuda._sleep(0)
        return (perf_counter_ns() - start) / _LAUNCHES

    return _typical(launches)


def _launch_and_wait() -> float:
    import torch

    def one() -> float:
        torch.cuda.synchronize()
        start = perf_counter_ns()
        torch.cuda._sleep(0)
        torch.cuda.synchronize()
        return float(perf_counter_ns() - start)

    return median([one() for _ in range(_LAUNCHES)])


def _clock_pair() -> float:
    readings = [perf_counter_ns() for _ in range(2 * _LAUNCHES)]
    return median([float(later - earlier) for earlier, later in pairwise(readings)])


def _least_call() -> float:
    import torch

    x = torch.ones(1)

    def one() -> float:
        start = perf_counter_ns()
        torch.relu(x)
        return float(perf_counter_ns() - start)

    return median([one() for _ in range(_LAUNCHES)])


def _typical(measure: Callable[[], float]) -> float:
    measure()
    return median([measure() for _ in range(_REPEATS)])
