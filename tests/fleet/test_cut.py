"""How a run is cut: the same everywhere, everything once, and the longest first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.errors import UserError
from groundspeed.fleet.cut import cut, longest_first, parse_shard, shares

SECONDS = st.dictionaries(st.text("abcdefgh_", min_size=1, max_size=6), st.floats(0, 1e4), max_size=40)


@given(SECONDS, st.integers(1, 9))
def test_every_operator_is_in_one_shard_and_the_inventory_in_all(expected, count):
    cuts = [cut(expected, index, count, "c", False) for index in range(1, count + 1)]
    assert sorted(name for one in cuts for name in one.operators) == sorted(expected)
    assert {tuple(one.inventory.items()) for one in cuts} == {tuple(cuts[0].inventory.items())}


@given(SECONDS, st.integers(1, 9), st.randoms(use_true_random=False))
def test_the_order_in_which_they_are_known_changes_nothing(expected, count, random):
    names = list(expected)
    random.shuffle(names)
    assert shares({name: expected[name] for name in names}, count) == shares(expected, count)


@given(SECONDS, st.integers(1, 9))
def test_no_shard_is_longer_than_the_bound(expected, count):
    """Against the lower bound of the best: the mean load, or the longest operator."""
    loads = [sum(expected[name] for name in share) for share in shares(expected, count)]
    least = max([sum(expected.values()) / count, *expected.values()], default=0.0)
    assert max(loads) <= least * 2 - least / count + 1e-6
    for share in shares(expected, count):
        assert list(share) == [name for name in longest_first(expected) if name in share]


def test_the_longest_go_first_to_whoever_has_least():
    assert shares({"a": 5.0, "b": 4.0, "c": 3.0, "d": 3.0, "e": 3.0}, 2) == (("a", "d"), ("b", "c", "e"))
    assert shares({"a": 1.0}, 3) == (("a",), (), ())


@pytest.mark.parametrize("text", ["", "0/2", "3/2", "1", "1/0", "-1/2", "1/2/3", "a/b", "1/99999999", "١/٢"])
def test_a_shard_that_cannot_be_is_refused(text):
    with pytest.raises(UserError, match="expected i/n"):
        parse_shard(text)


def test_a_shard_is_two_numbers():
    assert parse_shard("2/3") == (2, 3)
