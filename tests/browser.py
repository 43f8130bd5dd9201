"""One Chromium for every test of a session: Playwright's synchronous interface can be started once in a thread."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
PATIENCE_MS = 30_000  # what is drawn late on a loaded machine is late, not wrong


def chromium() -> str | None:
    """Where a Chromium is installed, if one is."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def expect(what: Any) -> Any:
    """Playwright's assertions about a page or a locator, which wait until they hold, for PATIENCE_MS at most."""
    from playwright import sync_api

    sync_api.expect.set_options(timeout=PATIENCE_MS)
    return sync_api.expect(what)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the Python package playwright")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        yield opened
        opened.close()
