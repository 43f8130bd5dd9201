"""Times as result files write them, as milliseconds since 1970 in UTC."""

from __future__ import annotations

import functools
from datetime import UTC, datetime
from typing import Any

_LIMIT = 1e14  # the year 5138: beyond it is no time


@functools.lru_cache(maxsize=4096)
def milliseconds(text: str) -> float | None:
    """An ISO 8601 time, taken for UTC where it names no zone; None when it is not one."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def javascript_time(value: Any) -> float | None:
    """asv's milliseconds; None when the file holds anything else there."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if number and abs(value) < _LIMIT else None
