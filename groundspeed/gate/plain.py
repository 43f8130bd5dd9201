"""Text from outside, made fit to print: one line, nothing that cannot be seen, no command to a terminal or a runner."""

from __future__ import annotations

import re
import textwrap
import unicodedata

_UNSHOWN = ("Cc", "Cf", "Cs", "Co", "Cn")
# What GitHub's runner obeys in a job's output, whoever printed it: "::name::" where a line begins, behind blanks too,
# and "##[name]" anywhere. Azure's and TeamCity's agents read "##vso[" and "##teamcity[".
_AT_START = re.compile(r"^(\s*)::")
_ANYWHERE = re.compile(r"##(?=\w*\[)")


def plain(text: str) -> str:
    """One line without control, format (bidirectional too) or private characters: it shows as what it is.

    A command to a CI runner is spelt so that it reads the same and is none.
    """
    flat = " ".join(text.split())
    shown = "".join("�" if unicodedata.category(c) in _UNSHOWN else c for c in flat)
    return _no_command(_ANYWHERE.sub("# #", shown))


def wrapped(text: str, width: int, indent: str) -> list[str]:
    """Plain text over lines of a width, the first one after ``indent``, the others below it."""
    lines = textwrap.wrap(
        plain(text),
        width,
        initial_indent=indent,
        subsequent_indent=" " * len(indent),
        break_long_words=True,
        break_on_hyphens=False,
    )
    return [_no_command(line) for line in lines]  # a break may have put a "::" where a line begins


def _no_command(line: str) -> str:
    return _AT_START.sub(r"\1∷", line)
