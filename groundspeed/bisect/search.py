"""Binary search for the first bad one in a row, over places where nobody can tell.

What is known before: whatever lies before the row is good, its last place is bad. Where the middle cannot be judged its
neighbours are tried, then places further and further out: a stretch of commits that do not build is left after the
logarithm of its length, and entered only when everything around it has been judged.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass


class State(enum.Enum):
    """What is learnt of one place. UNKNOWN: it cannot be run, or the evidence decides neither way."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Answer:
    """The first bad place is one of ``last_good + 1`` to ``first_bad``; ``last_good`` is -1 before the row.

    Every place strictly between the two is UNKNOWN.
    """

    last_good: int
    first_bad: int

    @property
    def is_exact(self) -> bool:
        return self.first_bad == self.last_good + 1


def search(count: int, judge: Callable[[int], State]) -> Answer:
    """Find it among the places 0 to ``count - 1``; ``judge`` is asked of a place once at most, and never of the last.

    Where goodness comes and goes, the answer is one of the places at which it goes. Raises ValueError for no places.
    """
    if count < 1:
        raise ValueError("a search among no places")
    good, bad = -1, count - 1
    unknown: set[int] = set()
    while (place := next_place(good, bad, unknown)) is not None:
        state = judge(place)
        if state is State.UNKNOWN:
            unknown.add(place)
        elif state is State.GOOD:
            good = place
        else:
            bad = place
    return Answer(good, bad)


def next_place(good: int, bad: int, unknown: Collection[int]) -> int | None:
    """The place to judge between a good and a bad one, or None where all between them are unknown.

    The middle; where that lies in a stretch of unknown places, one just outside: half the stretch's width away, or half
    the way to the end where that is nearer. Inside the stretch only what is left when there is no outside.
    """
    left = [place for place in range(good + 1, bad) if place not in unknown]
    if not left:
        return None
    middle = (good + bad) // 2
    first, last = _stretch(middle, sorted(place for place in unknown if good < place < bad))
    outside = [place for place in left if not first <= place <= last]
    if not outside:
        return _nearest(left, middle)
    if not first <= middle <= last:
        return _nearest(outside, middle)
    step = max((last - first + 1) // 2, 1)
    below, above = max(first - step, (good + first) // 2), min(last + step, (last + bad + 1) // 2)
    wanted = [place for place in (below, above) if good < place < bad and not first <= place <= last]
    return _nearest(outside, _nearest(wanted, middle))


def steps_left(good: int, bad: int) -> int:
    """How many more places must be judged between a good and a bad one, if all of them can be."""
    return max(bad - good - 1, 0).bit_length()


def _stretch(middle: int, unknown: Sequence[int]) -> tuple[int, int]:
    """First and last place of the stretch of unknown ones around the middle; an empty one where there is none.

    Unknown places belong together when no more lies between two groups of them than the wider one is wide: what was
    tried on either side of a stretch says that of it, and two broken commits a hundred apart say nothing.
    """
    groups: list[tuple[int, int]] = []
    for place in unknown:
        groups.append((place, place))
        while len(groups) > 1 and _together(groups[-2], groups[-1]):
            groups[-2:] = [(groups[-2][0], groups[-1][1])]
    return next((group for group in groups if group[0] <= middle <= group[1]), (middle, middle - 1))


def _together(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return other[0] - one[1] - 1 <= max(one[1] - one[0] + 1, other[1] - other[0] + 1)


def _nearest(places: Sequence[int], wanted: int) -> int:
    return min(places, key=lambda place: (abs(place - wanted), place))
