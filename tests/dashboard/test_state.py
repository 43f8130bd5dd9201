from __future__ import annotations

from urllib.parse import urlsplit

from hypothesis import given
from hypothesis import strategies as st

from dashboard.state import State, parse_state

NAMES = st.text("abcdefgh_", min_size=1, max_size=8)
VALUES = st.text(min_size=1, max_size=40).filter(lambda text: text.strip() == text)


@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_a_link_reads_back_as_its_state(params: dict[str, str]) -> None:
    state = State("operator", params, "/bench/")
    parts = urlsplit(state.here())
    read = parse_state(parts.path, f"?{parts.query}", "/bench/")
    assert (read.page, dict(read.params)) == ("operator", params)


def test_defaults_stay_out_of_links() -> None:
    state = State("operator", {"operator": "relu", "dtype": "float16"})
    assert state.here(dtype=None) == "/operator?operator=relu"
    assert state.here(operator="") == "/operator?dtype=float16"


def test_another_page_keeps_what_pages_share() -> None:
    state = State("operator", {"machine": "nvidia-h200", "operator": "relu", "metric": "call"})
    assert state.to("roofline") == "/roofline?machine=nvidia-h200&metric=call"


def test_a_value_of_several_is_added_and_taken_away() -> None:
    state = State("operator", {"show": "a"})
    both = parse_state("/operator", urlsplit(state.toggled("show", "b")).query)
    assert both.many("show") == ("a", "b")
    assert parse_state("/operator", urlsplit(both.toggled("show", "a")).query).many("show") == ("b",)


def test_anything_may_stand_in_a_url() -> None:
    assert parse_state("/../../etc/passwd", "?%00=%FF&x=" + "y" * 9000).get("x") == "y" * 400
    assert parse_state("/", "?" + "a=1&" * 500).params == {}
