"""From a record to what asv keeps of one parameter combination."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from groundspeed.asv_sweep import Swept
from groundspeed.records import Measurement, RecordError, read_record

FAILED = None
NOT_APPLICABLE = math.nan

Key = tuple[str, str, str]
"""Implementation, dtype, shape label: the values of asv_inventory.PARAMETERS."""


class Reply(NamedTuple):
    """asv's value of a combination, and the reason when it failed."""

    value: object
    reason: str = ""

    @property
    def applicable(self) -> bool:
        return not (isinstance(self.value, float) and math.isnan(self.value))


def reply(swept: Swept, key: Key, answer: Callable[[Measurement], object]) -> Reply:
    """What a sweep says of a combination, found by its values, never by a position.

    A failed implementation is FAILED; one that was skipped, left out or is not of this commit NOT_APPLICABLE: why is
    said once a sweep (groundspeed.asv_remarks), not for each of hundreds of combinations.
    """
    if swept.record is None:
        return Reply(FAILED, swept.reason) if swept.failed else Reply(NOT_APPLICABLE)
    try:
        measurement = _indexed(swept.record).get(key)
    except RecordError as error:
        return Reply(FAILED, str(error))
    if measurement is None or measurement.status == "skipped":
        return Reply(NOT_APPLICABLE)
    if measurement.status == "failed":
        return Reply(FAILED, f"{measurement.failure}: {measurement.reason}")
    value = answer(measurement)
    if isinstance(value, float) and not math.isfinite(value):
        return Reply(FAILED, f"the value is {value}, which asv's files cannot hold")
    return Reply(NOT_APPLICABLE if value is None else value)


@functools.lru_cache(maxsize=4)
def _indexed(record: str) -> dict[Key, Measurement]:
    measurements = read_record(Path(record)).measurements
    return {(m.implementation, m.dtype, m.shape_label): m for m in measurements}
