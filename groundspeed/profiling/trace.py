"""torch.profiler's trace: kernels and copies of a GPU, or on a CPU the operators by their own time.

It is the Chrome trace format; a kernel's event carries what CUPTI knows of its launch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from groundspeed.profiling.kernels import Dim3, Launch

_ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")


def read_trace(path: Path, device: str) -> list[Launch]:
    """What ran on the device, in the order in which it began."""
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    return gpu_launches(events) if device == "cuda" else cpu_operators(events)


def gpu_launches(events: Iterable[Mapping[str, Any]]) -> list[Launch]:
    """Kernels, copies and fills."""
    found = [event for event in events if event.get("ph") == "X" and str(event.get("cat", "")).lower() in _ON_GPU]
    return [_launch(event) for event in sorted(found, key=lambda event: float(event["ts"]))]


def cpu_operators(events: Iterable[Mapping[str, Any]]) -> list[Launch]:
    """torch's operators with the time that each spent itself, without that of operators called inside it."""
    found = [event for event in events if event.get("ph") == "X" and event.get("cat") == "cpu_op"]
    # Longer first where two begin together: the outer one contains the other.
    found.sort(key=lambda event: (str(event.get("tid")), float(event["ts"]), -float(event["dur"])))
    launches: list[tuple[str, float]] = []
    open_ones: list[tuple[str, float, int]] = []  # thread, end, index into launches
    for event in found:
        thread, start, length = str(event.get("tid")), float(event["ts"]), float(event["dur"])
        while open_ones and (open_ones[-1][0] != thread or open_ones[-1][1] <= start):
            open_ones.pop()
        if open_ones:
            outer = open_ones[-1][2]
            launches[outer] = (launches[outer][0], launches[outer][1] - length)
        open_ones.append((thread, start + length, len(launches)))
        launches.append((str(event["name"]), length))
    return [Launch(name, max(0.0, microseconds) * 1e3) for name, microseconds in launches]


def _launch(event: Mapping[str, Any]) -> Launch:
    told = event.get("args", {})
    registers, shared = told.get("registers per thread"), told.get("shared memory")
    return Launch(
        name=str(event["name"]),
        duration_ns=float(event["dur"]) * 1e3,
        grid=_dims(told.get("grid")),
        block=_dims(told.get("block")),
        registers=None if registers is None else int(registers),
        shared_bytes=None if shared is None else int(shared),
    )


def _dims(value: Sequence[int] | None) -> Dim3 | None:
    return None if not value or len(value) != 3 else (int(value[0]), int(value[1]), int(value[2]))
