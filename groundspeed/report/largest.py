"""Which case stands for an operator where there is room for one: the one with the most to do."""

from __future__ import annotations

from groundspeed.records import Measurement, Record


def work_of(record: Record, entry: Measurement) -> int:
    """FLOPs of a case where the operator is bound by them, else its bytes."""
    return entry.flops if record.header.bound == "compute" else entry.bytes_read + entry.bytes_written


def largest_case(record: Record) -> tuple[str, str] | None:
    """Dtype and shape of the case with the most work that anything was measured on; the first of equals."""
    measured = [entry for entry in record.measurements if entry.status == "ok"]
    if not measured:
        return None
    largest = max(measured, key=lambda entry: work_of(record, entry))
    return largest.dtype, largest.shape_label
