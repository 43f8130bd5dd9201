"""What the gate judges of a pair, how each is judged, and the threshold it has unless configured otherwise.

A threshold T is relative: 0.03 lets head be 3 % worse. For every metric more is worse.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from groundspeed.records import Measurement


class Method(enum.Enum):
    """PAIRED: the two-step rule on process medians. TAIL: the p99 rule on samples. EXACT: the same in every process."""

    PAIRED = "paired"
    TAIL = "tail"
    EXACT = "exact"


@dataclass(frozen=True)
class Metric:
    """One thing that can get worse.

    thresholds
        Tried in order: the first that the series' noise floor allows is T.
    quantity
        Key of ``Measurement.samples`` for metrics made of samples, empty for those with one value a process.
    slack
        An absolute amount, in the metric's unit, that head may be over the threshold: what is smaller is not judged.
    """

    name: str
    label: str
    unit: str  # "ns", "bytes" or "" (a ratio of norms)
    method: Method
    thresholds: tuple[float, ...]
    quantity: str = ""
    slack: float = 0.0

    def samples(self, measurement: Measurement) -> list[float]:
        """The metric's samples, or its one value; empty when it was not measured."""
        if self.quantity:
            return measurement.samples.get(self.quantity, [])
        value = _VALUES[self.name](measurement)
        return [] if value is None else [float(value)]


def _error(measurement: Measurement) -> float | None:
    return None if measurement.accuracy is None else measurement.accuracy.norm


_VALUES = {
    "first_call": lambda measurement: measurement.first_call_ns,
    "peak_memory": lambda measurement: measurement.memory_bytes,
    "error": _error,
}

# A CPU shared with an operating system cannot be held to 3 %: where no noise floor says better, 5 % is where it starts.
DEVICE_THRESHOLDS = (0.03, 0.05)

METRICS = {
    metric.name: metric
    for metric in (
        Metric("device_cold", "device time, cold", "ns", Method.PAIRED, DEVICE_THRESHOLDS, "device_cold"),
        Metric("device_cold_p99", "device time, cold, p99", "ns", Method.TAIL, (0.20,), "device_cold"),
        Metric("device_hot", "device time, hot", "ns", Method.PAIRED, DEVICE_THRESHOLDS, "device_hot"),
        Metric("call", "call time", "ns", Method.PAIRED, (0.10, 0.20), "call"),
        Metric("first_call", "first call", "ns", Method.PAIRED, (0.50,), slack=50e6),
        # One page: allocators round up, so a smaller difference is theirs.
        Metric("peak_memory", "peak memory", "bytes", Method.EXACT, (0.05,), slack=4096),
        # The reference is float64: a relative error below its rounding says nothing.
        Metric("error", "error", "", Method.EXACT, (0.50,), slack=1e-15),
    )
}
