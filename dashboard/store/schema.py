"""The columns of the store's frames, and the metrics made of them.

Every value is in a base unit: seconds, bytes, joules, FLOP/s, bytes/s. Names and labels are Categorical columns, which
behave like strings in filters and in ``to_dicts()``; cast to ``pl.String`` before joining with a frame made by hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

SCHEMA_VERSION = 5  # part of the cache's name: raise it when a column changes

Project = Literal["groundspeed", "asv", "pytest-benchmark"]
Direction = Literal["lower", "higher"]

NAME = pl.Categorical()
TIME = pl.Datetime("ms", "UTC")
VALUE = pl.Float64()
BOUND = pl.Float32()  # ends of intervals and percentiles: seven digits, half the memory

SERIES = ("machine", "environment", "operator", "implementation", "dtype", "shape")
"""Columns that name one series: the same measurement taken again in another run."""

CASE = ("operator", "dtype", "shape")
"""Columns that name one case."""

LABELS: dict[str, pl.DataType] = {
    "machine": NAME,
    "run_id": NAME,  # of a foreign file: commit and environment
    "source": NAME,  # file, relative to the results folder
    "project": NAME,  # "groundspeed", "asv" or "pytest-benchmark"
    "environment": NAME,  # asv's environment name; of our records, whose series no driver splits, asv's matrix or ""
    "commit": NAME,  # full hash, or ""
    "commit_time": TIME,
    "started": TIME,
    "operator": NAME,  # of foreign results: the benchmark's name
    "implementation": NAME,  # "" for foreign results
    "backend": NAME,
    "dtype": NAME,
    "shape": NAME,  # "M=4096,N=1024"; of foreign results, the parameters
    "case": NAME,  # dtype and shape, for reading
    "facets": NAME,  # JSON object of the shape's or the foreign parameters' names and values
    "status": NAME,  # ok, skipped, failed
    "failure": NAME,  # build, incorrect, impossible, crash, oom, timeout, error; "" unless failed
    "reason": NAME,
    "unstable": NAME,  # why the interval stayed wide; "" when it did not
    "timer": NAME,  # cupti, events, graph, clock; "" for foreign results
    "case_digest": NAME,  # of foreign results: the benchmark's version
    "implementation_digest": NAME,
    "tuned": NAME,
    "unit": NAME,  # of ``value``
    "direction": NAME,  # of ``value``: lower or higher is better
    "n": pl.UInt32(),  # samples behind the primary value
}

VALUES: dict[str, pl.DataType] = {
    "device_cold": VALUE,  # medians of the samples
    "device_cold_low": BOUND,  # 99 % interval of the median
    "device_cold_high": BOUND,
    "device_cold_p95": BOUND,
    "device_cold_p99": BOUND,
    "device_hot": VALUE,
    "device_hot_low": BOUND,
    "device_hot_high": BOUND,
    "device_hot_p99": BOUND,
    "call": VALUE,
    "call_low": BOUND,
    "call_high": BOUND,
    "call_p99": BOUND,
    "host": VALUE,
    "first_call": VALUE,
    "peak_memory": VALUE,
    "energy": VALUE,
    "max_abs_error": VALUE,
    "norm_error": VALUE,
    "bytes": VALUE,  # of one call, read and written
    "flops": VALUE,
    "items": VALUE,
    "bytes_per_s": VALUE,  # over device_cold
    "flops_per_s": VALUE,
    "items_per_s": VALUE,
    "speedup_eager": VALUE,  # device_cold over torch_eager's of the same record, median of the ratios round by round
    "roofline": VALUE,  # fraction of the ceiling that binds; null without ceilings
    "value": VALUE,  # foreign results only
    "value_low": BOUND,
    "value_high": BOUND,
}

MEASUREMENTS: dict[str, pl.DataType] = {**LABELS, **VALUES}
"""One row a (machine, run, operator, implementation, dtype, shape)."""

RUNS: dict[str, pl.DataType] = {
    "machine": NAME,
    "run_id": NAME,
    "source": NAME,
    "project": NAME,
    "environment": NAME,
    "operator": NAME,  # "" for a foreign file, which holds many benchmarks
    "commit": NAME,
    "commit_time": TIME,
    "started": TIME,
    "dirty": pl.Boolean(),
    "misplaced": pl.Boolean(),  # true of a record that lies elsewhere than its header says; else null
    "tier": NAME,
    "bound": NAME,
    "command": NAME,
    "details": NAME,  # JSON object: every field of the environment, in the file's own names
    "ceilings": NAME,  # JSON object: copy, read, write in bytes/s, matmul {dtype: FLOP/s}; "" when not measured
    "ladders": NAME,  # JSON object: ladder name -> implementations in order
    "ideas": NAME,  # JSON object: implementation -> its idea
    "missing": NAME,  # JSON object: back end -> why it has no implementation
    "seconds": VALUE,  # wall time of the sweep; null when not known
    "rows": pl.UInt32(),
}
"""One row a file that was read."""

MACHINES: dict[str, pl.DataType] = {
    "machine": NAME,
    "details": NAME,  # JSON object: machine.json, or what the newest run says of its device
    "runs": pl.UInt32(),  # files read
    "rows": pl.UInt32(),  # rows in them, asv's copies of our records included
    "first": TIME,
    "last": TIME,
}

PROBLEMS: dict[str, pl.DataType] = {"file": pl.String(), "reason": pl.String()}


@dataclass(frozen=True)
class Metric:
    """One thing a page can show: a value column, its interval if it has one, its unit and which way is better."""

    name: str  # the value column
    label: str
    unit: str  # "s", "B", "J", "B/s", "FLOP/s", "1/s" or "" for a plain number
    direction: Direction = "lower"
    low: str = ""
    high: str = ""


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("device_cold", "Device time, cold L2", "s", "lower", "device_cold_low", "device_cold_high"),
        Metric("device_hot", "Device time, hot L2", "s", "lower", "device_hot_low", "device_hot_high"),
        Metric("call", "Call time", "s", "lower", "call_low", "call_high"),
        Metric("device_cold_p99", "Device time, p99", "s"),
        Metric("device_cold_p95", "Device time, p95", "s"),
        Metric("device_hot_p99", "Device time, hot L2, p99", "s"),
        Metric("call_p99", "Call time, p99", "s"),
        Metric("host", "Host overhead", "s"),
        Metric("first_call", "First call", "s"),
        Metric("bytes_per_s", "Bandwidth", "B/s", "higher"),
        Metric("flops_per_s", "Arithmetic rate", "FLOP/s", "higher"),
        Metric("items_per_s", "Throughput", "1/s", "higher"),
        Metric("roofline", "Fraction of the roofline", "", "higher"),
        Metric("peak_memory", "Peak memory", "B"),
        Metric("energy", "Energy a call", "J"),
        Metric("max_abs_error", "Largest error", ""),
        Metric("norm_error", "Error norm", ""),
        Metric("value", "Value", "", "lower", "value_low", "value_high"),  # unit and direction are columns
    )
}


def empty(columns: dict[str, pl.DataType]) -> pl.DataFrame:
    """A frame of no rows with these columns."""
    return pl.DataFrame(schema=columns)
