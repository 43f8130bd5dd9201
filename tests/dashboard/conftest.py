"""A results folder, a server over it and a browser that watches for errors."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import PATIENCE_MS
from tests.dashboard.make_results import write_results

if TYPE_CHECKING:
    from dashboard.store import Store

ROOT = Path(__file__).resolve().parents[2]
AXE = "4.14.1"
DRAWN = """() => [...document.querySelectorAll("[data-table], [data-matrix], [data-select]")]
    .every(host => host.firstChild || host.closest("details:not([open])"))"""


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that no test writes to."""
    return write_results(tmp_path_factory.mktemp("session") / "results")


@pytest.fixture(scope="session")
def store(results: Path) -> Store:
    from dashboard.store import open_store  # late: `pytest -m gpu` must load this file where there is no dash

    return open_store(results)


@dataclass
class Site:
    """A dashboard that is being served."""

    address: str
    results: Path


def serve(results: Path, base: str = "/") -> tuple[Site, Any]:
    """Serve a folder on a free port of this machine; the second value ends it by ``close()``."""
    from waitress import create_server

    from dashboard.app import make_app
    from dashboard.store import open_store

    app = make_app(open_store(results), base)
    server = create_server(app.server, host="127.0.0.1", port=0, threads=8)
    threading.Thread(target=server.run, daemon=True).start()
    return Site(f"http://127.0.0.1:{server.effective_port}{base}", results), server


@pytest.fixture(scope="session")
def site(results: Path) -> Iterator[Site]:
    served, server = serve(results)
    yield served
    server.close()


@pytest.fixture
def fresh_site(tmp_path: Path) -> Iterator[Site]:
    """A dashboard over a folder of its own, which the test may change."""
    served, server = serve(write_results(tmp_path / "results", commits=7))
    yield served
    server.close()


@dataclass
class Watched:
    """A page, and everything that went wrong in it."""

    page: Any
    wrong: list[str] = field(default_factory=list)

    def open(self, address: str) -> Any:
        """Go to an address and wait until the view is drawn."""
        self.page.goto(address)
        self.drawn()
        return self.page

    def drawn(self) -> None:
        """Wait for the view, and for the tables, matrices and choices that scripts draw in it."""
        self.page.wait_for_selector("main .page, main .panel.empty")
        self.page.wait_for_function(DRAWN)


def watch(page: Any) -> Watched:
    watched = Watched(page)
    page.on("console", lambda message: message.type == "error" and watched.wrong.append(message.text))
    page.on("pageerror", lambda error: watched.wrong.append(str(error)))
    page.on("requestfailed", lambda request: watched.wrong.append(f"failed: {request.url} {request.failure}"))
    return watched


@pytest.fixture
def watched(browser: Any) -> Iterator[Watched]:
    """A new page of 1280 by 900 in a new context; the test fails for any error of console, policy or network."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    watching = watch(context.new_page())
    yield watching
    context.close()
    expected = [text for text in watching.wrong if "ERR_ABORTED" not in text]  # a poll cut off by leaving the page
    assert not expected, expected


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, from npm, kept under .cache."""
    folder = ROOT / ".cache" / "axe"
    source = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not source.is_file():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("needs axe-core: there is no npm to install it with")
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), f"axe-core@{AXE}"],
            capture_output=True,
            text=True,
            timeout=120,
        )
        if done.returncode or not source.is_file():
            pytest.skip(f"needs axe-core: npm could not install it: {done.stderr.strip()[-200:]}")
    return source.read_text(encoding="utf-8")
