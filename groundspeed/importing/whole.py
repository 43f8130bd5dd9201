"""A record of imported measurements, that nothing in it contradicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from groundspeed.analysis.foreign import NotResults
from groundspeed.records import Footer, Header, Measurement, Record

TIER = "imported"  # no tier of a spec chose these cases


def whole(header: Header, operator: str, measurements: Sequence[Measurement]) -> Record:
    """The record of one operator. Raises NotResults where two measurements have one implementation and case."""
    counts = Counter((each.implementation, each.dtype, each.shape_label) for each in measurements)
    (implementation, dtype, shape), count = counts.most_common(1)[0]
    if count > 1:
        named = " ".join(part for part in (f"{operator}/{implementation}", dtype, shape) if part)
        raise NotResults(f"holds {count} results of {named}: its parameters do not tell them apart")
    return Record(
        msgspec.structs.replace(header, operator=operator), tuple(measurements), Footer(end=len(measurements))
    )
