"""Pages of which a part is generated: what stands between two marks is replaced, and the rest is left alone."""

from __future__ import annotations

from groundspeed.errors import UserError


def replace_between(page: str, begin: str, end: str, text: str, name: str) -> str:
    """``page`` with ``text`` between its marks, which stay.

    Raises UserError, which calls the page ``name``, when the marks are not there once each and in this order.
    """
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise UserError(f"{name}: expected the two lines {begin!r} and {end!r} once each, in this order")
    before, rest = page.split(begin)
    return f"{before}{begin}{text}{end}{rest.split(end)[1]}"
