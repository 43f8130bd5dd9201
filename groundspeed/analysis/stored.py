"""Stored results in one form, whatever wrote them: what one run kept of one series."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from groundspeed.analysis.stats import median, median_interval
from groundspeed.records import Record

# What of an environment makes two runs differ; the rest (memory size, process count) does not change a kernel.
ENVIRONMENT = ("device_name", "driver", "cuda", "torch", "triton", "cupy", "power_cap_w", "cpu", "threads")
RECORD_METRICS = ("device_cold", "device_hot", "call", "peak_memory", "error")


@dataclass(frozen=True, order=True)
class SeriesId:
    """What two runs have in common where they can be compared. Parts that a format lacks are empty."""

    operator: str
    implementation: str
    dtype: str
    shape: str
    metric: str

    @property
    def label(self) -> str:
        series = "/".join(part for part in (self.operator, self.implementation) if part)
        return " ".join(part for part in (series, self.dtype, self.shape) if part)


@dataclass(frozen=True)
class StoredRun:
    """Which run: its commit, machine, and environment as sorted pairs."""

    run_id: str
    commit: str
    machine: str
    environment: tuple[tuple[str, str], ...] = ()
    computation: str = ""  # digest or version: runs with different ones did different work


@dataclass(frozen=True)
class Stored:
    """What one run kept of one series.

    value, low, high
        The median and its 99 % interval in ``unit``; None where the run kept none.
    samples
        May be empty: not every format keeps them.
    timer
        Two timers' values are not comparable; empty where only one exists.
    """

    series: SeriesId
    run: StoredRun
    unit: str
    status: str = "ok"
    reason: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    samples: tuple[float, ...] = ()
    timer: str = ""
    unstable: str = ""


def from_record(record: Record) -> Iterator[Stored]:
    """Every series of a record: times in ns, memory in bytes, error as a ratio of norms."""
    header = record.header
    kept = tuple((name, str(getattr(header.environment, name))) for name in ENVIRONMENT)
    for entry in record.measurements:
        run = StoredRun(header.run_id, header.commit, header.machine, kept, entry.case_digest)
        where = header.operator, entry.implementation, entry.dtype, entry.shape_label
        if entry.status != "ok":
            series = SeriesId(*where, "device_cold")
            yield Stored(series, run, "ns", entry.status, entry.reason)
            continue
        for metric in RECORD_METRICS:
            series = SeriesId(*where, metric)
            samples = tuple(entry.samples.get(metric, ()))
            if samples:
                yield timed(series, run, "ns", samples, entry.timer, entry.unstable)
        if entry.memory_bytes is not None:
            value = float(entry.memory_bytes)
            yield Stored(SeriesId(*where, "peak_memory"), run, "bytes", value=value, low=value, high=value)
        if entry.accuracy is not None:
            value = entry.accuracy.norm
            yield Stored(SeriesId(*where, "error"), run, "", value=value, low=value, high=value)


def timed(
    series: SeriesId, run: StoredRun, unit: str, samples: tuple[float, ...], timer: str = "", unstable: str = ""
) -> Stored:
    """A series with samples: median and interval are made of them."""
    low, high = median_interval(samples)
    return Stored(
        series,
        run,
        unit,
        value=median(samples),
        low=low,
        high=high,
        samples=samples,
        timer=timer,
        unstable=unstable,
    )
