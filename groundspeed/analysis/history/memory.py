"""Changes already found, so that a commit that arrives costs a look at what it added and not at every series' past."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, replace

from groundspeed.analysis.history.changes import SMALLEST, Change, find_changes
from groundspeed.analysis.history.levels import Values

_SLIDES = 8  # values that may have left a series at its old end since it was last looked at


@dataclass(frozen=True)
class _Seen:
    values: bytes
    smallest: float
    changes: tuple[Change, ...]


class Memory:
    """The changes of up to ``limit`` series by their names, those asked for last kept. Safe for several threads."""

    def __init__(self, limit: int = 20_000) -> None:
        self._limit = limit
        self._seen: OrderedDict[Hashable, _Seen] = OrderedDict()
        self._lock = threading.Lock()

    def changes(self, series: Hashable, values: Values, smallest: float = SMALLEST) -> tuple[Change, ...]:
        """As ``find_changes``; what was found earlier is kept where ``values`` only grew, or slid as a window does."""
        data = values.tobytes()
        with self._lock:
            seen = self._seen.get(series)
        if seen is not None and seen.smallest == smallest and seen.values == data:
            return seen.changes
        known = _carried(seen, data) if seen is not None and seen.smallest == smallest else None
        found = find_changes(values, smallest, known)
        with self._lock:
            self._seen[series] = _Seen(data, smallest, found)
            self._seen.move_to_end(series)
            while len(self._seen) > self._limit:
                self._seen.popitem(last=False)
        return found


def _carried(seen: _Seen, data: bytes) -> tuple[Change, ...] | None:
    """The known changes in the indices of ``data``, or None where the past is another."""
    size = 8
    for gone in range(_SLIDES + 1):
        kept = seen.values[gone * size :]
        if kept and data.startswith(kept):
            return tuple(
                replace(one, at=one.at - gone, after_index=one.after_index - gone, by_index=one.by_index - gone)
                for one in seen.changes
                if one.after_index >= gone
            )
    return None
