"""The search over commits: first whether good and bad differ at all, then where that begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from groundspeed.bisect.commits import Version
from groundspeed.bisect.comparing import Compared
from groundspeed.bisect.search import Answer, State, search
from groundspeed.errors import UserError
from groundspeed.operator import Case

Compare = Callable[[Version, tuple[Case, ...]], tuple[Compared, ...]]
Told = Callable[[int, Version, Compared], None]  # step (0 for the bad end), what was compared, what came of it


class SameSpeed(Exception):
    """Good and bad do not differ: there is nothing to search for. Says on which cases that was measured."""


@dataclass(frozen=True)
class Found:
    """Where it begins. ``candidates`` hold the first bad commit last; more than one where those before cannot be told.

    good
        The last version known to be good: the good end, or one of the row.
    bad
        What was measured of the last candidate, against the good end.
    """

    good: Version
    candidates: tuple[Version, ...]
    bad: Compared


@dataclass
class Hunt:
    """One search. ``tell`` hears of every comparison when it is done."""

    good: Version
    row: tuple[Version, ...]
    compare: Compare
    tell: Told
    _known: dict[str, Compared] = field(
        default_factory=dict
    )  # by digest: a change that came back is not measured twice
    _steps: int = 0

    def run(self, cases: tuple[Case, ...]) -> Found:
        """Search for where the case that became worst of all did so.

        Raises SameSpeed where none did, UserError where that cannot be told.
        """
        case = self._endpoints(cases)
        places: dict[int, Compared] = {len(self.row) - 1: case}

        def judge(place: int) -> State:
            places[place] = self._step(self.row[place], case.case)
            return places[place].state

        return self._found(search(len(self.row), judge), places)

    def _endpoints(self, cases: tuple[Case, ...]) -> Compared:
        """Good against bad; returns the case that got worst."""
        last = self.row[-1]
        answers = self.compare(last, cases)
        for answer in answers:
            self.tell(0, last, answer)
        worse = [answer for answer in answers if answer.state is State.BAD]
        if worse:
            worst = max(worse, key=lambda answer: answer.ratio)
            self._known[last.digest] = worst
            return worst
        unknown = [answer for answer in answers if answer.state is State.UNKNOWN]
        if unknown:
            raise UserError(f"good and bad cannot be told apart: {unknown[0].case.label}: {unknown[0].reason}")
        raise SameSpeed(", ".join(answer.case.label for answer in answers))

    def _step(self, version: Version, case: Case) -> Compared:
        self._known.setdefault(self.good.digest, Compared(case, State.GOOD))
        if version.digest not in self._known:
            (self._known[version.digest],) = self.compare(version, (case,))
        known = self._known[version.digest]
        self._steps += 1
        self.tell(self._steps, version, known)
        return known

    def _found(self, answer: Answer, places: dict[int, Compared]) -> Found:
        good = self.row[answer.last_good] if answer.last_good >= 0 else self.good
        return Found(good, self.row[answer.last_good + 1 : answer.first_bad + 1], places[answer.first_bad])
