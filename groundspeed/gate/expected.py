"""How long judging an operator should take, for runs that have a budget."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def expected_seconds(before: Sequence[float], sitting: Sequence[float]) -> float:
    """As long as the last time, by ``before``, else the median of what each of this sitting took; 0 for its first.

    The first must not be left out by what it took before: one that once took longer than every budget, of another tier
    for instance, would never be judged again.
    """
    if not sitting:
        return 0.0
    return before[-1] if before else statistics.median(sitting)
