"""The exported file: whole, offline, and the same numbers as the running dashboard."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import pytest

from dashboard import export_command
from tests.browser import PATIENCE_MS, expect
from tests.dashboard.conftest import Site, Watched, watch


@pytest.fixture(scope="module")
def exported(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "dashboard.html"
    parser = argparse.ArgumentParser()
    export_command.add_arguments(parser)
    assert export_command.run(parser.parse_args([str(path), "--results", str(results)])) == 0
    return path


def test_the_file_names_no_other_file(exported: Path) -> None:
    text = exported.read_text(encoding="utf-8")
    head = text[: text.index("<style>")]
    assert "default-src 'none'" in head
    assert not re.findall(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="(?!data:)', text)


def test_every_link_leads_somewhere(exported: Path) -> None:
    text = exported.read_text(encoding="utf-8")
    views = set(re.findall(r'<template id="([^"]+)"', text))
    links = set(re.findall(r'href="#([^"]+)"', text)) - {"main"}
    assert len(views) >= 20
    assert links
    assert links <= views
    assert 'href="/' not in text


@pytest.mark.browser
def test_it_opens_with_every_request_blocked(exported: Path, browser: Any) -> None:
    context = browser.new_context(offline=True)
    context.set_default_timeout(PATIENCE_MS)
    watched = watch(context.new_page())
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    page = watched.page
    page.goto(exported.as_uri())
    page.locator(".matrix").wait_for()
    for view in page.locator("template").evaluate_all("all => all.map(one => one.id)"):
        page.evaluate("id => { location.hash = id; }", view)
        page.wait_for_function("id => document.querySelector('main').dataset.view === id", arg=view)
        expect(page.locator("main .page > *").first).to_be_attached()
        if page.locator("main [data-figure]").count():
            page.locator("main .main-svg").first.wait_for()
    assert not watched.wrong
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    context.close()


@pytest.mark.browser
def test_it_shows_what_the_server_shows(exported: Path, site: Site, watched: Watched) -> None:
    page = watched.open(site.address)
    served = page.locator(".matrix").inner_text()
    page.goto(exported.as_uri())
    page.locator(".matrix").wait_for()
    watched.drawn()
    assert page.locator(".matrix").inner_text() == served
    page.get_by_role("link", name="softmax", exact=True).first.click()
    page.locator("h1", has_text="softmax").wait_for()
    page.locator("main .js-plotly-plot .point").first.wait_for()
    page.locator("summary", has_text="Table and CSV").first.click()
    expect(page.locator("#twin-cases tbody tr")).to_have_count(90)
    expect(page.locator("#twin-cases .count")).to_have_text("90 rows")
    expect(page.locator(".device")).to_have_text("GPU: Synthetic GPU")
