"""From records to the table everybody reads: time, speedup, rates, share of the ceiling, error and status.

A speedup is paired: round i of an implementation is divided into round i of the baseline, which ran in the same
round, so that whatever slowed the device in that round cancels. Speedups above 1 are faster than the baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from groundspeed.analysis.roofline import ceiling
from groundspeed.analysis.stats import Floats, geometric_mean, median, median_interval
from groundspeed.records import Accuracy, Failure, Header, Measurement, Record, Status

BASELINE = "torch_eager"
CONFIDENCE = 0.99

CaseKey = tuple[str, str, str]  # operator, dtype, shape label


@dataclass(frozen=True)
class Estimate:
    """A median and its 99 % interval; the interval is (-inf, inf) when the samples are too few for one."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, samples: Floats, confidence: float = CONFIDENCE) -> Estimate:
        return cls(median(samples), *median_interval(samples, confidence))


@dataclass(frozen=True)
class Row:
    """One implementation on one case in one run.

    time
        ns of the quantity asked for (cold device time unless another is named); None unless status is ok
    speedup
        of this implementation over the baseline, above 1 is faster; None where either has no time
    paired
        whether the speedup comes from per-round ratios; else it is a ratio of medians with a wider interval
    bytes_per_second, flops_per_second, items_per_second
        the operator's own bytes, operations and items over the median time; None where it counts none
    bus_bytes_per_second
        the same of what must pass between GPUs: bus bandwidth as nccl-tests defines it (its doc/PERFORMANCE.md)
    ceiling_share, bound
        least time that the run's measured ceilings allow over the median time (1 = at the ceiling), and the ceiling
        that sets it: "memory", "compute", "link" or "peer"; None and "" without measured ceilings
    error_ratio
        Euclidean error over the baseline's own on this case; None where either is unknown or the baseline's is 0
    """

    machine: str
    commit: str
    run_id: str
    operator: str
    dtype: str
    shape: dict[str, int | str]
    implementation: str
    backend: str
    idea: str
    status: Status
    failure: Failure | None
    reason: str
    unstable: str
    time: Estimate | None
    speedup: Estimate | None
    paired: bool
    bytes_per_second: float | None
    bus_bytes_per_second: float | None
    flops_per_second: float | None
    items_per_second: float | None
    ceiling_share: float | None
    bound: str
    accuracy: Accuracy | None
    error_ratio: float | None

    @property
    def shape_label(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.shape.items())

    @property
    def case(self) -> CaseKey:
        return self.operator, self.dtype, self.shape_label


@dataclass(frozen=True)
class GroupSpeedup:
    """The geometric mean of a group's speedups over the ``compared`` cases, of ``cases``, that both sides ran."""

    group: str
    value: float | None  # None when no case could be compared
    compared: int
    cases: int

    @property
    def coverage(self) -> str:
        return f"{self.compared} of {self.cases}"


def speedup_table(record: Record, baseline: str = BASELINE, quantity: str = "device_cold") -> tuple[Row, ...]:
    """One row for every measurement of a record, in the record's order.

    ``quantity`` is a key of ``Measurement.samples``. A baseline that is missing or failed on a case leaves that case's
    speedups None and nothing else.
    """
    baselines = {_case(entry): entry for entry in record.measurements if entry.implementation == baseline}
    return tuple(_row(record.header, entry, baselines.get(_case(entry)), quantity) for entry in record.measurements)


def paired_speedup(base: Sequence[float], other: Sequence[float], together: bool = True) -> tuple[Estimate, bool]:
    """How many times faster ``other`` is than ``base``, both in ns, and whether rounds could be paired.

    Lists of equal length from one worker (``together``) hold the same rounds: the median of their ratios with its own
    interval. Otherwise the ratio of the medians; each median's interval is taken at 99.5 %, so that by Bonferroni both
    hold together at 99 %.
    """
    if together and len(base) == len(other):
        return Estimate.of(np.asarray(base) / np.asarray(other)), True
    confidence = 1 - (1 - CONFIDENCE) / 2
    above, below = Estimate.of(base, confidence), Estimate.of(other, confidence)
    if below.low <= 0 or above.low <= 0:
        return Estimate(above.value / below.value, -np.inf, np.inf), False
    return Estimate(above.value / below.value, above.low / below.high, above.high / below.low), False


def fastest(rows: Iterable[Row], by: Callable[[Row], str]) -> tuple[Row, ...]:
    """Of each case and group the row with the least median time; rows without a time stand only where none has one."""
    best: dict[tuple[CaseKey, str], Row] = {}
    for row in rows:
        key = row.case, by(row)
        if key not in best or _median(row) < _median(best[key]):
            best[key] = row
    return tuple(best.values())


def group_speedups(
    rows: Iterable[Row], by: Callable[[Row], str] = lambda row: row.implementation
) -> list[GroupSpeedup]:
    """The geometric mean speedup of each group, in order of appearance, one row a case and group.

    Only cases that the group and the baseline both ran count; ``cases`` is how many the inventory lists for the group.
    Raises ``ValueError`` when a group holds two rows of one case: choose with ``fastest`` first.
    """
    groups: dict[str, dict[CaseKey, Row]] = {}
    for row in rows:
        members = groups.setdefault(by(row), {})
        if row.case in members:
            raise ValueError(f"group {by(row)} has two rows of {row.case}: take the fastest of each case first")
        members[row.case] = row
    return [_group(name, tuple(members.values())) for name, members in groups.items()]


def _group(name: str, rows: Sequence[Row]) -> GroupSpeedup:
    ratios = [row.speedup.value for row in rows if row.speedup is not None]
    return GroupSpeedup(name, geometric_mean(ratios) if ratios else None, len(ratios), len(rows))


def _row(header: Header, entry: Measurement, base: Measurement | None, quantity: str) -> Row:
    samples, base_samples = _samples(entry, quantity), _samples(base, quantity)
    time = Estimate.of(samples) if samples else None
    together = base is not None and base.apart == entry.apart
    speedup, paired = paired_speedup(base_samples, samples, together) if samples and base_samples else (None, False)
    seconds = time.value / 1e9 if time is not None and time.value > 0 else None
    moved = (entry.bytes_read, entry.bytes_written)
    top = ceiling(header.ceilings, header.bound, entry.dtype, entry.flops, moved, entry.bus_bytes)
    known = top is not None and seconds is not None
    return Row(
        machine=header.machine,
        commit=header.commit,
        run_id=header.run_id,
        operator=header.operator,
        dtype=entry.dtype,
        shape=entry.shape,
        implementation=entry.implementation,
        backend=entry.backend,
        idea=header.ideas.get(entry.implementation, ""),
        status=entry.status,
        failure=entry.failure,
        reason=entry.reason,
        unstable=entry.unstable,
        time=time,
        speedup=speedup,
        paired=paired,
        bytes_per_second=_rate(entry.bytes_read + entry.bytes_written, seconds),
        bus_bytes_per_second=_rate(entry.bus_bytes, seconds),
        flops_per_second=_rate(entry.flops, seconds),
        items_per_second=_rate(entry.items, seconds),
        ceiling_share=top.least_ns / (seconds * 1e9) if top is not None and seconds is not None else None,
        bound=top.bound if top is not None and known else "",
        accuracy=entry.accuracy,
        error_ratio=_error_ratio(entry, base),
    )


def _samples(entry: Measurement | None, quantity: str) -> list[float]:
    """Samples of an ok measurement; those that a failed one left behind are no result."""
    return entry.samples.get(quantity, []) if entry is not None and entry.status == "ok" else []


def _rate(amount: int, seconds: float | None) -> float | None:
    return amount / seconds if amount and seconds else None


def _error_ratio(entry: Measurement, base: Measurement | None) -> float | None:
    if entry.accuracy is None or base is None or base.accuracy is None or base.accuracy.norm == 0:
        return None
    return entry.accuracy.norm / base.accuracy.norm


def _case(entry: Measurement) -> tuple[str, str]:
    return entry.dtype, entry.shape_label


def _median(row: Row) -> float:
    return row.time.value if row.time is not None else np.inf
