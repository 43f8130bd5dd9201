"""Many readers at once, while new results come in."""

from __future__ import annotations

import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from dashboard.pages import PAGES
from tests.dashboard.conftest import Site
from tests.dashboard.make_results import GPU, write_run

READERS = 20


def ask(site: Site, path: str, search: str = "") -> dict[str, object]:
    """What the browser asks for a view: Dash's own callback."""
    body = {
        "output": "view.data",
        "outputs": {"id": "view", "property": "data"},
        "inputs": [
            {"id": "query", "property": "data", "value": {"path": path, "search": search}},
            {"id": "revision", "property": "data"},
        ],
        "changedPropIds": ["query.data"],
    }
    request = urllib.request.Request(
        site.address + "_dash-update-component", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        view: dict[str, object] = json.load(answer)["response"]["view"]["data"]
        return view


def test_twenty_readers_and_a_writer(fresh_site: Site) -> None:
    wanted = [("/" + page, f"?metric={metric}") for page in PAGES for metric in ("device_cold", "call", "device_hot")]

    def read(reader: int) -> list[str]:
        return [
            json.dumps(ask(fresh_site, *wanted[(reader + step) % len(wanted)]), ensure_ascii=False) for step in range(6)
        ]

    with ThreadPoolExecutor(READERS) as pool:
        answers = [pool.submit(read, reader) for reader in range(READERS)]
        for ordinal in range(8, 11):
            write_run(fresh_site.results, GPU, ordinal)
            with urllib.request.urlopen(fresh_site.address + "api/revision", timeout=60) as answer:
                assert answer.status == 200
        views = [view for each in answers for view in each.result()]
    assert len(views) == READERS * 6
    assert not [view for view in views if "This page failed" in view]
