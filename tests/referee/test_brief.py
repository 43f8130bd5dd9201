"""The one sitting of a process that measures what an earlier one judged in full: what it still sees, and what not."""

from __future__ import annotations

import dataclasses

import pytest

from groundspeed.measure.referee import REFEREE, briefly
from groundspeed.operator import case
from tests.referee.cheaters import CHEATERS, FIRST_INPUTS_ONLY, Cheater
from tests.referee.court import GALLERY, measured, timing_bench, verdict

# Decided by the code, and so by the process that judged it in full: answers kept from inputs that are gone, other
# sittings' orders, and memory that grows from sitting to sitting.
BY_CODE = {str(each) for each in CHEATERS if len(each.blind.sittings) < len(REFEREE.sittings)} | {
    str(each) for each in CHEATERS if each.blind.growth is not REFEREE.growth
}
BY_CHANCE = {"double/torch_scribbles"}  # an even number of calls, drawn anew in each sitting, puts its bit back


def found(cheater: Cheater) -> str:
    rules = briefly(cheater.rules or REFEREE)
    return verdict(cheater.tree, cheater.operator, cheater.name, cheater.case, rules)


def test_it_is_the_first_sitting_and_nothing_else_is_changed():
    brief = briefly(REFEREE)
    assert brief.sittings == REFEREE.sittings[:1] and brief.checks == REFEREE.checks
    assert brief == FIRST_INPUTS_ONLY


@pytest.mark.parametrize("cheater", [each for each in CHEATERS if str(each) not in BY_CODE | BY_CHANCE], ids=str)
def test_whoever_is_seen_without_the_other_sittings_is_seen(cheater):
    assert cheater.accepts(found(cheater))


def test_few_need_the_other_sittings():
    assert 0 < len(BY_CODE) < len(CHEATERS) / 3


def test_who_stops_working_while_it_is_timed_is_seen_all_the_same():
    bench = timing_bench()
    (only,) = measured(GALLERY, "double", ("torch_tires",), case("float32", N=1000), _brief(bench))
    assert only.failure == "incorrect" and only.reason.startswith("right before it was timed, wrong since")


def _brief(bench):
    return dataclasses.replace(bench, rules=briefly(REFEREE))
