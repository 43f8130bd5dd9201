"""How well found changes agree with known ones: matches, misses, false ones, F1, and how soon a step is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from groundspeed.analysis.history.generator import Made, Truth
from groundspeed.analysis.history.levels import Values

TOLERANCE = 3  # commits between a change and where it was found

# From values to the stretches (first, last index) in which changes were found, in order.
Detector = Callable[[Values], Sequence[tuple[int, int]]]


@dataclass(frozen=True)
class Score:
    """Counts over some series."""

    series: int = 0
    matched: int = 0
    false: int = 0
    missed: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(
            self.series + other.series,
            self.matched + other.matched,
            self.false + other.false,
            self.missed + other.missed,
        )

    @property
    def f1(self) -> float:
        """2·matched / (2·matched + false + missed) (van Rijsbergen, 1979); 1 where there was nothing and none found."""
        right = 2 * self.matched
        return right / (right + self.false + self.missed) if right + self.false + self.missed else 1.0


def score(made: Made, found: Sequence[tuple[int, int]]) -> Score:
    """Each found stretch takes the first known change, not taken yet, that it touches within ``TOLERANCE``."""
    left: list[Truth] = list(made.truth)
    matched = 0
    for first, last in found:
        hit = next((t for t in left if first <= t.last + TOLERANCE and last >= t.first - TOLERANCE), None)
        if hit is not None:
            left.remove(hit)
            matched += 1
    return Score(1, matched, len(found) - matched, len(left))


def named_within(made: Made, detect: Detector, commits: int) -> tuple[int, int]:
    """Of the steps of a history, how many are found when ``commits`` values of the new level are known, and of all."""
    steps = [truth for truth in made.truth if truth.first == truth.last]
    named = 0
    for step in steps:
        found = detect(made.values[: step.first + commits])
        named += any(first <= step.first + TOLERANCE and last >= step.first - TOLERANCE for first, last in found)
    return named, len(steps)
