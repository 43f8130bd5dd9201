"""The ways of timing that a calibration puts side by side, and what each of them reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """One way of timing a call.

    quantity
        What its value is of: "cold" (caches emptied), "hot" (call after call), "call" (the host's wall time too).
    with_
        The method in whose pass it is read too; empty for one with a pass of its own.
    peer
        Whether it is another project's.
    """

    key: str
    title: str
    what: str
    quantity: str
    device: str = "cuda"
    with_: str = ""
    peer: bool = False


class CannotTime(Exception):
    """Why a method gives no figure of a probe."""


METHODS = (
    Method("cupti", "groundspeed", "CUPTI spans, L2 emptied by a read: what `device_cold` is", "cold"),
    Method("cupti_hot", "hot", "the call after it in the same pass: what `device_hot` is", "hot", with_="cupti"),
    Method("cupti_memset", "memset flush", "CUPTI spans, L2 emptied by a memset of its size", "cold"),
    Method("events", "events", "events behind a blocking kernel, L2 emptied by a read", "cold"),
    Method("events_hot", "events, hot", "the call after it in the same pass", "hot", with_="events"),
    Method("graph", "graph, hot", "CUDA graphs of many launches", "hot"),
    Method("nvbench", "NVBench", "`cuda.bench`, cold, L2 emptied by a memset; its median", "cold", peer=True),
    Method("do_bench", "do_bench", "`triton.testing.do_bench`, its median", "cold", peer=True),
    Method(
        "torch_benchmark",
        "torch Timer",
        "`torch.utils.benchmark`, call after call, its median",
        "call",
        device="any",
        peer=True,
    ),
    Method("ncu", "Nsight Compute", "`gpu__time_duration`, caches flushed, clocks left alone", "cold", peer=True),
    Method("clock", "groundspeed", "the monotonic clock, caches emptied by a read", "cold", device="cpu"),
    Method("clock_hot", "hot", "the call after it in the same pass", "hot", device="cpu", with_="clock"),
)
BY_KEY = {method.key: method for method in METHODS}


def methods_of(device: str) -> tuple[Method, ...]:
    return tuple(method for method in METHODS if method.device in (device, "any"))


def why_not_here(device: str) -> dict[str, str]:
    """Methods that a device does not have, with the reason."""
    reason = "needs a GPU" if device == "cpu" else "is a CPU's timer"
    return {method.key: reason for method in METHODS if method.device not in (device, "any")}


def primary(device: str) -> str:
    """The method whose value is the device time of a measurement."""
    return "cupti" if device == "cuda" else "clock"
