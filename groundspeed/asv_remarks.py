"""What asv's tables cannot say of a sweep: why a combination failed or is n/a."""

from __future__ import annotations

from pathlib import Path

from groundspeed.asv_sweep import Swept
from groundspeed.records import RecordError, read_record
from groundspeed.report.remarks import remarks
from groundspeed.report.style import Style


def remarks_on(swept: Swept) -> str:
    """Failed, unstable and skipped measurements, each reason once, and what was left out; empty when there is none."""
    if swept.record is None:
        return swept.reason
    try:
        record = read_record(Path(swept.record))
    except RecordError as error:
        return str(error)
    lines = remarks([record], Style())
    if swept.left_out:
        lines.append(swept.left_out)
    return "\n".join(lines).rstrip()
