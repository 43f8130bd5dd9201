"""The search alone, with a judge that knows the answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.bisect.search import State, search, steps_left


class Oracle:
    """Places from ``first_bad`` on are bad; those in ``unknown`` cannot be judged."""

    def __init__(self, first_bad, unknown=()):
        self.first_bad, self.unknown, self.asked = first_bad, frozenset(unknown), []

    def __call__(self, place):
        self.asked.append(place)
        if place in self.unknown:
            return State.UNKNOWN
        return State.BAD if place >= self.first_bad else State.GOOD


@st.composite
def rows(draw):
    count = draw(st.integers(1, 200))
    unknown = draw(st.sets(st.integers(0, count - 1))) - {count - 1}  # the last place is known to be bad
    return count, draw(st.integers(0, count - 1)), unknown


@given(rows())
def test_any_first_bad_place_is_found_among_any_that_cannot_be_judged(row):
    count, first_bad, unknown = row
    oracle = Oracle(first_bad, unknown)
    answer = search(count, oracle)
    assert answer.last_good < first_bad <= answer.first_bad
    assert answer.last_good not in unknown and answer.first_bad not in unknown
    assert set(range(answer.last_good + 1, answer.first_bad)) <= unknown, "a place that can be judged was left open"
    assert len(set(oracle.asked)) == len(oracle.asked), "a place was judged twice"
    assert count - 1 not in oracle.asked


@given(rows())
def test_the_answer_is_one_place_where_it_and_the_one_before_can_be_judged(row):
    count, first_bad, unknown = row
    answer = search(count, Oracle(first_bad, unknown - {first_bad, first_bad - 1}))
    assert answer.is_exact and answer.first_bad == first_bad


@given(st.integers(1, 5000), st.data())
def test_without_gaps_it_takes_the_logarithm_of_the_count(count, data):
    oracle = Oracle(data.draw(st.integers(0, count - 1)))
    assert search(count, oracle).first_bad == oracle.first_bad
    assert len(oracle.asked) <= (count - 1).bit_length() == steps_left(-1, count - 1)


@pytest.mark.parametrize("first_bad", [5, 290, 300, 700, 750, 999])
def test_a_long_stretch_beside_the_answer_is_left_by_doubling(first_bad):
    """400 commits that do not build: tried one after the other they would cost 400 steps."""
    count, oracle = 1000, Oracle(first_bad, range(300, 700))
    answer = search(count, oracle)
    if first_bad == 300:  # then 300 to 699 stay open, and every one of them must have been tried
        assert (answer.last_good, answer.first_bad) == (299, 700)
    elif first_bad == 700:
        assert answer.last_good == 299 and answer.first_bad == 700
    else:
        assert answer.is_exact and answer.first_bad == first_bad
        assert len(oracle.asked) <= 5 * count.bit_length()  # and not 400


def test_the_places_that_are_tried_surround_the_one_that_cannot_be_judged():
    oracle = Oracle(8, {4, 5})
    search(10, oracle)
    assert oracle.asked == [4, 3, 6, 7, 8]


def test_one_place_is_the_answer_unasked():
    oracle = Oracle(0)
    assert search(1, oracle).first_bad == 0 and not oracle.asked
    with pytest.raises(ValueError, match="no places"):
        search(0, oracle)


def test_where_goodness_comes_and_goes_the_answer_is_a_place_where_it_goes():
    states = [State.GOOD, State.BAD, State.BAD, State.GOOD, State.GOOD, State.BAD, State.BAD]
    answer = search(len(states), states.__getitem__)
    assert states[answer.first_bad] is State.BAD
    assert answer.last_good == -1 or states[answer.last_good] is State.GOOD
    assert answer.is_exact
