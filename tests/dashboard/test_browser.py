"""The dashboard in a real Chromium: what is on screen, what a click does, and that nothing goes wrong unseen."""

from __future__ import annotations

import csv
import gzip
import json
import math
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from dashboard import triage
from dashboard.pages import PAGES
from tests.browser import expect
from tests.dashboard.conftest import Site, Watched
from tests.dashboard.make_results import COMMITS, GPU, write_run

pytestmark = pytest.mark.browser
MENU = [page for page in PAGES.values() if page.in_navigation]


def newest(results: Path, machine: str, operator: str) -> list[dict[str, Any]]:
    """Measurements of an operator's newest record, read without any of our code."""
    path = sorted((results / machine / "records").glob(f"*/{operator}.jsonl.gz"))[-1]
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()[1:-1]]


def cold(results: Path, operator: str) -> dict[tuple[str, str, str], list[float]]:
    """(implementation, dtype, shape) -> ns, round by round, of the newest record."""
    return {
        (row["implementation"], row["dtype"], ",".join(f"{k}={v}" for k, v in row["shape"].items())): row["samples"][
            "device_cold"
        ]
        for row in newest(results, GPU, operator)
        if row["status"] == "ok"
    }


def medians(results: Path, operator: str) -> dict[tuple[str, str, str], float]:
    """(implementation, dtype, shape) -> seconds, of the newest record."""
    return {key: statistics.median(samples) * 1e-9 for key, samples in cold(results, operator).items()}


def paired(results: Path, operator: str) -> dict[tuple[str, str, str], float]:
    """(implementation, dtype, shape) -> speedup over eager: the median of the rounds' ratios, of the newest record."""
    samples = cold(results, operator)
    return {
        (name, dtype, shape): statistics.median(
            base / own for base, own in zip(samples["torch_eager", dtype, shape], rounds, strict=True)
        )
        for (name, dtype, shape), rounds in samples.items()
    }


def seconds(text: str) -> float:
    number, unit = text.strip().lstrip("★≈ ").split(" ")[:2]
    return float(number.replace(",", "")) * {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]


@pytest.mark.parametrize("page", MENU, ids=lambda page: page.name or "overview")
def test_every_page_renders_without_an_error(site: Site, watched: Watched, page: Any) -> None:
    opened = watched.open(site.address + page.name)
    opened.wait_for_load_state("networkidle")
    expect(opened.locator("main h1").first).to_be_attached()
    expect(opened.locator("nav a[aria-current=page]")).to_have_text(page.title)
    assert "This page failed" not in opened.locator("main").inner_text()
    if page.controls:
        expect(opened.locator(".device")).to_have_text("GPU: Synthetic GPU")


def test_speedups_on_screen_equal_those_computed_from_the_files(site: Site, watched: Watched) -> None:
    page = watched.open(site.address)
    header = [text.lstrip("● ") for text in page.locator(".matrix thead th").all_inner_texts()]
    compared = 0
    for row in page.locator(".matrix tbody tr").all():
        operator = row.locator("th").inner_text()
        ratios = defaultdict(list)
        for (name, _, _), ratio in paired(site.results, operator).items():
            ratios[name].append(ratio)
        for title, cell in zip(header[1:], row.locator("td").all(), strict=True):
            expected = math.exp(statistics.fmean(map(math.log, ratios[title])))
            text = cell.locator(".main").inner_text().strip("★≈ ✕")
            assert float(text.rstrip("×")) == pytest.approx(expected, rel=5.1e-3), (operator, title)
            compared += 1
    assert compared == 24


def test_times_on_screen_equal_those_in_the_files(site: Site, watched: Watched) -> None:
    page = watched.open(site.address + "operator?operator=softmax&dtype=float16")
    values = medians(site.results, "softmax")
    header = [text.lstrip("● ") for text in page.locator(".matrix thead th").all_inner_texts()]
    compared = 0
    for row in page.locator(".matrix tbody tr").all():
        shape = row.locator("th").inner_text()
        for name, cell in zip(header[1:], row.locator("td").all(), strict=True):
            text = cell.locator(".main").inner_text()
            if (name, "float16", shape) in values:
                assert seconds(text) == pytest.approx(values[name, "float16", shape], rel=5.1e-3)
                compared += 1
            else:
                assert "incorrect" in text
        best = min((v, n) for (n, d, s), v in values.items() if (d, s) == ("float16", shape))[1]
        assert header[1 + next(i for i, c in enumerate(row.locator("td").all()) if "★" in c.inner_text())] == best
    assert compared == 29


def test_the_question_of_a_glance(site: Site, watched: Watched) -> None:
    """Which softmax is fastest at this shape, by how much against eager, did anything regress."""
    page = watched.open(site.address + "operator?operator=softmax&dtype=float32")
    page.get_by_text("+9.0 %").wait_for()  # changes are looked for beside the page
    watched.drawn()
    tiles = page.locator(".tile").all_inner_texts()
    assert "triton_row +9" in next(text for text in tiles if "Open regressions" in text)
    assert "cuda_vec4" in next(text for text in tiles if "Most often fastest" in text)
    row = page.locator(".matrix tbody tr", has_text="N=1024").first
    best = row.locator("td", has_text="★")
    ratio = paired(site.results, "softmax")["cuda_vec4", "float32", "M=4096,N=1024"]
    assert f"{ratio:.2f}×" in best.inner_text()


def test_marks_tell_skipped_failed_and_unstable_apart(site: Site, watched: Watched) -> None:
    page = watched.open(site.address + "operator?operator=softmax")
    expect(page.locator(".matrix td.skipped")).to_have_count(5)  # cupy_raw in bfloat16
    expect(page.locator(".matrix td.failed")).to_have_count(1)
    assert (
        page.locator(".matrix td.failed a").get_attribute("title").endswith("expected 0.0071, got 0 (tolerance 1e-3)")
    )
    expect(page.locator(".matrix td", has_text="≈")).to_have_count(3)  # torch_compile at N=512


def test_a_filter_changes_the_view_and_the_link_in_place(site: Site, watched: Watched) -> None:
    page = watched.open(site.address)
    entries = page.evaluate("history.length")
    before = page.locator(".matrix").inner_text()
    page.locator("select[data-param=metric]").select_option("call")
    page.wait_for_function("text => document.querySelector('.matrix').innerText !== text", arg=before)
    page.wait_for_url("**/?metric=call")
    page.locator("select[data-param=baseline]").select_option("triton_row")
    page.locator("h2", has_text="Speedup over triton_row: Call time").wait_for()
    page.wait_for_url("**/?metric=call&baseline=triton_row")
    assert page.evaluate("history.length") == entries
    assert page.evaluate("document.activeElement.dataset.param") in ("baseline", None)


def test_a_link_gives_the_same_view_again(site: Site, watched: Watched) -> None:
    address = site.address + "operator?operator=matmul&metric=bytes_per_s&dtype=float16&baseline=torch_compile"
    page = watched.open(address)
    first, first_whole = page.locator(".matrix").inner_text(), page.locator(".matrix").text_content()
    expect(page.locator("select[data-param=operator]")).to_have_value("matmul")
    expect(page.locator("select[data-param=metric]")).to_have_value("bytes_per_s")
    page.reload()
    watched.drawn()
    expect(page.locator(".matrix")).to_have_text(first_whole)
    assert page.locator(".matrix").inner_text() == first
    assert page.url == address


def test_back_and_forward(site: Site, watched: Watched) -> None:
    page = watched.open(site.address)
    page.get_by_role("link", name="softmax", exact=True).first.click()
    page.locator("h1", has_text="softmax").wait_for()
    page.get_by_role("navigation").get_by_role("link", name="Roofline").click()
    page.locator("h1", has_text="Roofline").wait_for()
    page.go_back()
    page.locator("h1", has_text="softmax").wait_for()
    page.go_back()
    page.locator("h2", has_text="Fastest of each operator").wait_for()
    page.go_forward()
    page.locator("h1", has_text="softmax").wait_for()


def test_from_the_overview_down_to_the_samples(site: Site, watched: Watched) -> None:
    page = watched.open(site.address)
    page.locator(".matrix tbody tr", has_text="softmax").locator("td", has_text="1.67×").locator("a").click()
    page.locator("h1", has_text="softmax").wait_for()
    page.locator(".matrix tbody th a", has_text="float32 M=4096,N=1024").click()
    page.locator("h1", has_text="History of softmax").wait_for()
    page.locator(".js-plotly-plot .point").first.wait_for()
    page.locator("summary", has_text="Table and CSV").click()
    page.locator("#twin-history tr", has_text="triton_row").first.get_by_role("link", name="open").click()
    page.locator("h1", has_text="softmax triton_row").wait_for()
    watched.drawn()
    body = page.locator("main").inner_text()
    assert "groundspeed run softmax --tier full" in body
    assert "580.82" in body
    assert "sm_mhz" in body
    row = next(
        r
        for r in newest(site.results, GPU, "softmax")
        if (r["implementation"], r["dtype"], r["shape"]["N"]) == ("triton_row", "float32", 1024)
    )
    shown = page.locator(".table", has_text="Median").locator("tr", has_text="cold L2").inner_text().split("\t")
    assert int(shown[1]) == len(row["samples"]["device_cold"])
    assert seconds(shown[2]) == pytest.approx(statistics.median(row["samples"]["device_cold"]) * 1e-9, rel=5.1e-3)


def test_a_click_on_a_point_opens_its_samples(site: Site, watched: Watched) -> None:
    page = watched.open(site.address + "history?operator=relu&show=triton_row")
    point = page.locator(".js-plotly-plot .scatterlayer .point").nth(4)
    point.wait_for()
    box = point.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.locator("h1", has_text="relu triton_row").wait_for()
    assert "/samples?" in page.url


def test_tables_sort_filter_and_give_csv(site: Site, watched: Watched) -> None:
    page = watched.open(site.address + "operator?operator=softmax&dtype=float32")
    page.locator("summary", has_text="Table and CSV").first.click()
    table = page.locator("#twin-cases")
    table.get_by_role("searchbox").fill("triton device>20us")
    rows = table.locator("tbody tr")
    expect(rows).to_have_count(2)
    table.get_by_role("button", name="Device time, cold L2").click()
    expect(table.locator("th", has_text="Device time")).to_have_attribute("aria-sort", "ascending")
    expect(rows.first).to_contain_text("N=4096")
    table.get_by_role("button", name="Device time, cold L2").click()
    expect(rows.first).to_contain_text("N=16384")
    with page.expect_download() as download:
        table.get_by_role("button", name="CSV").click()
    read = list(csv.DictReader(Path(download.value.path()).read_text().splitlines()))
    values = medians(site.results, "softmax")
    assert [row["Shape"] for row in read] == ["M=4096,N=16384", "M=4096,N=4096"]
    assert float(read[0]["device_cold_s"]) == pytest.approx(values["triton_row", "float32", "M=4096,N=16384"])


def test_compare_only_what_both_have(site: Site, watched: Watched) -> None:
    page = watched.open(site.address + "compare?axis=implementation&left=torch_eager&right=cupy_raw&operator=softmax")
    ratios = [ratio for (name, _, _), ratio in paired(site.results, "softmax").items() if name == "cupy_raw"]
    tile = page.locator(".tile", has_text="Geometric mean").inner_text()
    assert f"{math.exp(statistics.fmean(map(math.log, ratios))):.2f}×" in tile
    assert "10 cases in both" in tile
    assert "5 only on the left, 0 only on the right" in page.locator(".tile", has_text="Not compared").inner_text()


def test_two_machines_are_named_for_what_they_are(site: Site, watched: Watched) -> None:
    page = watched.open(site.address + "compare?axis=machine")
    assert "GPU: Synthetic GPU; cpu-synthetic is a CPU: Synthetic CPU" in page.locator(".notice").inner_text()


def test_the_history_marks_the_step_and_the_driver(site: Site, watched: Watched) -> None:
    page = watched.open(site.address + "history?operator=softmax&shape=M%3D4096%2CN%3D1024&show=triton_row")
    page.locator("h2", has_text="Change points").wait_for()
    page.get_by_text("+8.9 %").or_(page.get_by_text("+9.0 %")).or_(page.get_by_text("+8.8 %")).first.wait_for()
    page.locator("summary", has_text="Table and CSV").click()
    changed = page.locator("#twin-history tr", has_text="environment: driver")
    expect(changed).to_have_count(1)
    assert changed.inner_text().split("\t")[1] == "5"


def test_new_results_appear_and_the_reader_stays(fresh_site: Site, watched: Watched) -> None:
    page = watched.open(fresh_site.address + "operator?operator=softmax")
    page.locator("summary", has_text="Table and CSV").first.click()
    page.locator("#twin-cases input").fill("cuda_vec4")
    page.evaluate("window.scrollTo(0, 700)")
    page.wait_for_timeout(300)
    before = (page.evaluate("window.scrollY"), page.locator("#footer").inner_text())
    page.wait_for_timeout(1200)
    write_run(fresh_site.results, GPU, 8, ("softmax",))
    page.wait_for_function("text => document.getElementById('footer').innerText !== text", arg=before[1])
    assert page.evaluate("window.scrollY") == before[0]
    expect(page.locator("#twin-cases input")).to_have_value("cuda_vec4")
    expect(page.locator("#twin-cases tbody tr")).to_have_count(15)
    expect(page.get_by_role("status").filter(has_text="New results")).to_have_count(1)


def test_triage_is_kept_and_shown(fresh_site: Site, watched: Watched) -> None:
    for ordinal in range(7, COMMITS):
        write_run(fresh_site.results, GPU, ordinal, ("softmax",))
    page = watched.open(fresh_site.address + "regressions")
    page.get_by_role("link", name="softmax triton_row").click()
    page.get_by_role("radio", name="expected").check()
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Not saved: expected: say why").wait_for()
    page.get_by_label("Note").fill("accepted: wider rows")
    page.get_by_label("Your name").fill("ada")
    page.get_by_role("button", name="Save").click()
    page.locator(".log", has_text="ada: expected — accepted: wider rows").wait_for()
    page.locator("h2", has_text="Nothing to triage").wait_for()
    event = json.loads((fresh_site.results / triage.FILE).read_text())
    assert (event["state"], event["who"], event["note"]) == ("expected", "ada", "accepted: wider rows")
    watched.open(fresh_site.address)
    page.locator(".tile", has_text="Open regressions").get_by_text("none known").wait_for()


def test_below_another_path(results: Path, watched: Watched) -> None:
    from tests.dashboard.conftest import serve

    site, server = serve(results, "/team/bench/")
    page = watched.open(site.address)
    page.get_by_role("link", name="softmax", exact=True).first.click()
    page.locator("h1", has_text="softmax").wait_for()
    assert "/team/bench/operator?operator=softmax" in page.url
    page.reload()
    watched.drawn()
    page.locator(".js-plotly-plot .point").first.wait_for()
    page.close()
    server.close()


def test_the_keyboard_reaches_everything(site: Site, watched: Watched) -> None:
    page = watched.open(site.address)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the content"
    reached = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "(e => e.dataset.param || (e.closest('.matrix') && 'matrix') || (e.closest('nav') && 'nav') ||"
                " (e.closest('.table') && 'table') || (e.matches('[data-theme-switch]') && 'theme') || '')"
                "(document.activeElement)"
            )
        )
    assert {"machine", "metric", "baseline", "dtype", "matrix", "nav", "table", "theme"} <= reached
    page.locator(".matrix td a").first.focus()
    page.keyboard.press("Enter")
    page.locator("h1", has_text="matmul").wait_for()


def test_light_and_dark(site: Site, watched: Watched) -> None:
    page = watched.open(site.address)
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.get_by_role("button", name="Switch between light and dark").click()
    dark = page.evaluate(colour)
    assert light != dark
    page.reload()
    watched.drawn()
    assert page.evaluate(colour) == dark


@pytest.mark.parametrize("page", MENU, ids=lambda page: page.name or "overview")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(site: Site, watched: Watched, axe: str, page: Any, scheme: str) -> None:
    opened = watched.page
    opened.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    watched.open(site.address + page.name)
    opened.wait_for_load_state("networkidle")
    opened.evaluate(axe)  # through the debugger: the page's policy lets no foreign script in
    found = opened.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = [
        (fault["id"], [node["html"][:160] for node in fault["nodes"][:3]])
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
    ]
    assert not serious, serious


@pytest.mark.parametrize("page", MENU, ids=lambda page: page.name or "overview")
def test_a_phone_scrolls_in_one_direction(site: Site, watched: Watched, page: Any) -> None:
    opened = watched.page
    opened.set_viewport_size({"width": 390, "height": 844})
    watched.open(site.address + page.name)
    opened.wait_for_load_state("networkidle")
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_phone_reads_the_cases_of_a_matrix(site: Site, watched: Watched) -> None:
    """Broken after commas alone, and still there when the matrix is scrolled."""
    watched.page.set_viewport_size({"width": 390, "height": 844})
    page = watched.open(site.address + "operator?operator=softmax")
    heads = page.locator(".matrix tbody th")
    expect(heads).to_have_count(15)
    assert heads.first.inner_text() == "bfloat16 M=4096,N=128"
    lines = "th => new Set([...th.querySelector('a').getClientRects()].map(part => Math.round(part.top))).size"
    assert max(heads.evaluate_all(f"all => all.map({lines})")) <= 3
    assert max(heads.evaluate_all("all => all.map(th => th.offsetWidth)")) <= 0.45 * 390
    where = """() => [".scroll:has(.matrix)", ".matrix thead th", ".matrix tbody th"]
        .map(one => Math.round(document.querySelector(one).getBoundingClientRect().left))"""
    page.evaluate("document.querySelector('.scroll:has(.matrix)').scrollLeft = 250")
    page.wait_for_function("document.querySelector('.scroll:has(.matrix)').scrollLeft > 200")
    scroller, corner, case = page.evaluate(where)
    assert corner == case == scroller


def test_no_chart_offers_to_upload_its_data(site: Site, watched: Watched) -> None:
    page = watched.open(site.address + "roofline")
    page.locator(".js-plotly-plot .point").first.wait_for()
    page.locator(".js-plotly-plot").hover()
    expect(page.locator(".modebar-btn").first).to_be_attached()
    titles = [b.get_attribute("data-title") or "" for b in page.locator(".modebar-btn").all()]
    assert titles
    assert not [title for title in titles if "cloud" in title.lower() or "studio" in title.lower()]
