"""The pages: each is a pure function from a view to components."""

from __future__ import annotations

from dashboard.pages import (
    claims,
    compare,
    data,
    history,
    operator,
    overview,
    profile,
    regressions,
    roofline,
    samples,
)
from dashboard.pages.page import Page

PAGES: dict[str, Page] = {
    page.name: page
    for page in (
        overview.PAGE,
        operator.PAGE,
        history.PAGE,
        compare.PAGE,
        roofline.PAGE,
        regressions.PAGE,
        claims.PAGE,
        data.PAGE,
        samples.PAGE,
        profile.PAGE,
    )
}

__all__ = ["PAGES", "Page"]
