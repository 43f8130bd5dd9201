"""Which case stands for an operator where there is room for one: the one with the most to do."""

from __future__ import annotations

from collections.abc import Sequence

from groundspeed.records import Measurement, Record
from groundspeed.report.standing import Standing


def work_of(record: Record, entry: Measurement) -> int:
    """FLOPs of a case where the operator is bound by them, else its bytes."""
    return entry.flops if record.header.bound == "compute" else entry.bytes_read + entry.bytes_written


def largest_case(parts: Sequence[Standing]) -> str:
    """Dtype and shape of the case with the most work, of what stands of an operator; the first of equals."""
    newest = parts[0].record  # says of all of them by what an operator is bound
    entries = [entry for part in parts for entry in part.entries]
    return max(entries, key=lambda entry: work_of(newest, entry)).case_label
