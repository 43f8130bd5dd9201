"""What an error says in a line."""

from __future__ import annotations

import pytest

from groundspeed.errors import first_line, kind_and_line


@pytest.mark.parametrize(
    ("said", "line", "with_kind"),
    [
        ("expected 3\ngot 4", "expected 3", "ValueError: expected 3"),
        ("\n  \n late ", "late", "ValueError: late"),
        ("", "ValueError", "ValueError"),
        (" \n ", "ValueError", "ValueError"),
        ("\x1b[91m\x1b[1merror[IR]:\x1b[0m no IR\n", "error[IR]: no IR", "ValueError: error[IR]: no IR"),
        ("\x1b[38;2;1;2;3m\x1b[0m\n\x07be\x00ll\x1b[2K\x7f\ta tab", "bell\ta tab", "ValueError: bell\ta tab"),
        ("\x1b[0m", "ValueError", "ValueError"),
    ],
)
def test_it_is_the_first_that_is_not_blank_or_its_kind(said, line, with_kind):
    assert first_line(ValueError(said)) == line
    assert kind_and_line(ValueError(said)) == with_kind
