from __future__ import annotations

import pytest

from dashboard.columns import aligned, clip, width, wrapped


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [("abcdef", 6, "abcdef"), ("abcdefgh", 5, "ab…gh"), ("abcdef", 1, "…"), ("漢字漢字", 5, "漢…字")],
)
def test_clip_keeps_both_ends(text: str, columns: int, shown: str) -> None:
    assert clip(text, columns) == shown
    assert width(shown) <= columns


def test_columns_are_clipped_until_a_line_fits() -> None:
    head, row = aligned([("name", "env", "much"), ("n" * 60, "e" * 50, "1")], (0, 1))
    assert width(row) <= 80 and row.count("…") == 2
    assert head.index("much") == row.index("1")
    assert aligned([("a", "b")], (0, 1)) == ["a  b"]


def test_a_long_sentence_takes_more_lines() -> None:
    lines = wrapped("word " * 40, "    ")
    assert len(lines) > 2 and all(line.startswith("    word") and width(line) <= 80 for line in lines)
