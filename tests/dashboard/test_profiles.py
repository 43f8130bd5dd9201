"""Profiles in the dashboard: which there are, that no name leads out of their folder, that their text stays text."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from dashboard.app import make_app
from dashboard.frames import Library
from dashboard.offline_html import to_html
from dashboard.pages.operator import PAGE as OPERATOR
from dashboard.pages.profile import inert
from dashboard.state import State, parse_state
from dashboard.store import Store, open_store
from dashboard.store.profiles import LIMIT, Profile, profiles_of, text_of
from dashboard.view import resolve
from groundspeed.analysis.profiles import profile_path, write_profile
from groundspeed.errors import UserError
from tests.browser import expect
from tests.dashboard.conftest import Site, Watched
from tests.dashboard.make_results import GPU, commit_hash, write_results
from tests.dashboard.test_app import FAILED, shown

CASE = {"operator": "softmax", "implementation": "triton_row", "dtype": "float32", "shape": "M=4096,N=1024"}
PAGE = """# softmax/triton\\_row, float32 M=4096,N=1024

- The L2 cache bounds it: 93 % of peak, triton\\_row&lt;float> at 86 %.
- Memory bounds it.

## kernel 1: softmax\\_row

| | |
|---|---|
| duration | 123 µs |

Synthetic GPU, {tool} 2025.3, 3 calls, commit {commit}, {taken} UTC.
"""
HOSTILE = """- A sentence.

<script>window.hurt = 1</script><img src=x onerror="window.hurt = 1">

[a](javascript:alert(1)) [b](/data) ![c](/assets/x.png) <https://example.org/d> https://example.org/e mailto:f@g.org
\\[h](/h) \\\\[i](/i) [j]

[j]: https://example.org/j
"""


def write(results: Path, ordinal: int = 11, tool: str = "ncu", taken: str = "2026-04-06 10:00", **changed: str) -> Path:
    """A page as `groundspeed profile` writes it, of one commit of the synthetic results."""
    case = {**CASE, **changed}
    commit = commit_hash(ordinal)
    path = profile_path(
        results,
        case.get("machine", GPU),
        case["operator"],
        case["implementation"],
        f"{case['dtype']} {case['shape']}",
        commit,
        case.get("dirty", "") != "",
        tool,
    )
    write_profile(path, case.get("text", PAGE.format(tool=tool, commit=commit[:8], taken=taken)))
    return path


def found(results: Path, **changed: str) -> list[Profile]:
    case = {"machine": GPU, **CASE, **changed}
    return profiles_of(results, case["machine"], case["operator"], case["implementation"])


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two commits of results, and a profile of the newer. No test writes to it."""
    results = write_results(tmp_path_factory.mktemp("held") / "results", commits=2)
    write(results, 1)
    return results


@pytest.fixture(scope="module")
def kept(held: Path) -> Store:
    return open_store(held)


@pytest.fixture
def profiled(held: Path, tmp_path: Path) -> Path:
    """The same for one test alone."""
    return Path(shutil.copytree(held, tmp_path / "results", symlinks=True))


def test_a_page_is_known_by_its_name_and_what_it_says(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert found(tmp_path) == [
        Profile(
            *CASE.values(),
            commit=commit_hash(11)[:8],
            dirty=False,
            tool="ncu",
            taken=found(tmp_path)[0].taken,
            said="The L2 cache bounds it: 93 % of peak, triton_row<float> at 86 %.",
            path=path,
        )
    ]
    one = found(tmp_path)[0]
    assert f"{one.taken:%Y-%m-%d %H:%M %Z}" == "2026-04-06 10:00 UTC"
    assert one.is_of(commit_hash(11)) and not one.is_of(commit_hash(10)) and not one.is_of("")
    assert text_of(one) == path.read_text()


def test_the_newest_is_first_whatever_the_files_times_say(tmp_path: Path) -> None:
    old = write(tmp_path, 9, taken="2026-04-01 10:00")
    new = write(tmp_path, 10, "torch", taken="2026-04-02 10:00")
    os.utime(old, (2_000_000_000, 2_000_000_000))
    assert [one.path for one in found(tmp_path)] == [new, old]
    undated = write(tmp_path, 8, text="- Nothing is said of when.\n")
    os.utime(undated, (1_000_000_000, 1_000_000_000))
    assert [one.path for one in found(tmp_path)] == [new, old, undated]


def test_a_page_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    write(tmp_path)
    assert found(tmp_path)[0].said.startswith("The L2 cache")
    write(tmp_path, text="- Latency bounds it.\n")
    assert found(tmp_path)[0].said == "Latency bounds it."


@pytest.mark.parametrize("shape", ["N=1", "B=1,H=16,causal=0", "N=4,to=nhwc", "N=4,mode=a-b"])
@pytest.mark.parametrize("dirty", ["", "yes"])
def test_every_shape_is_told_from_commit_and_tool(tmp_path: Path, shape: str, dirty: str) -> None:
    write(tmp_path, shape=shape, dirty=dirty)
    (one,) = found(tmp_path)
    assert (one.dtype, one.shape, one.dirty, one.tool) == ("float32", shape, bool(dirty), "ncu")
    assert one.is_of(commit_hash(11)) == (not dirty)


def test_a_page_made_outside_git_is_of_no_commit(tmp_path: Path) -> None:
    path = profile_path(tmp_path, GPU, "softmax", "triton_row", "float32 N=1", "", False, "torch")
    write_profile(path, "- It is bound.\n")
    (one,) = found(tmp_path)
    assert (one.commit, one.state, one.shape) == ("", "nocommit", "N=1")
    assert not one.is_of(commit_hash(11))


def test_of_an_operator_those_of_every_implementation(tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path, implementation="cuda_vec4")
    write(tmp_path, operator="relu")
    write(tmp_path, machine="another-gpu")
    assert {one.implementation for one in profiles_of(tmp_path, GPU, "softmax")} == {"triton_row", "cuda_vec4"}
    assert profiles_of(tmp_path, GPU, "softmax", "") == []
    assert profiles_of(tmp_path, GPU, "matmul") == profiles_of(tmp_path / "none", GPU, "softmax") == []


def test_other_files_are_no_profiles(tmp_path: Path) -> None:
    path = write(tmp_path)
    for name in (
        "README.md",
        f".{path.name}",
        f"{path.name}.part",
        "float32-N=1-968ac8c4-ncu.txt",
        "-N=1-968ac8c4-.md",
    ):
        (path.parent / name).write_text("no profile")
    (path.parent / "float32-N=1-968ac8c4-ncu.md").mkdir()
    os.mkfifo(path.parent / "float32-N=2-968ac8c4-ncu.md")
    assert [one.path for one in found(tmp_path)] == [path]


def test_one_that_is_gone_or_too_long_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, text="x" * (LIMIT + 1))
    (one,) = found(tmp_path)
    with pytest.raises(UserError, match="larger than 1 MiB"):
        text_of(one)
    path.unlink()
    with pytest.raises(UserError, match="does not exist any more"):
        text_of(one)
    assert found(tmp_path) == []


def test_bytes_that_are_no_text_are_shown_as_far_as_they_are(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_bytes(b"- Bound by \xff\xfe\x00.\n")
    (one,) = found(tmp_path)
    assert text_of(one).startswith("- Bound by \ufffd")


OUT = [
    *("..", ".", "", "/", "../profiles", "../../../../secret", "softmax/../../../../../secret", "a/b", "\\..\\secret"),
    *("%2e%2e", "..%2f..%2fsecret", "%2e%2e%2f%2e%2e%2fsecret", ".hidden", "nul\0byte", "x" * 300, "\udcff", "~", "*"),
]


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """Results with a profile, and pages that look like one at places where no link may lead."""
    results = tmp_path / "results"
    page = write(results)
    for folder in (tmp_path / "secret", results / GPU / "secret", results / GPU / "profiles" / "softmax" / ".hidden"):
        folder.mkdir()
        (folder / page.name).write_text("- SECRET\n")
    return results


@pytest.mark.parametrize("name", [*OUT, "/etc", "/tmp"])
@pytest.mark.parametrize("part", ["machine", "operator", "implementation"])
def test_no_name_leads_out_of_the_folder(beside: Path, part: str, name: str) -> None:
    assert len(found(beside)) == 1
    assert found(beside, **{part: name}) == []
    assert found(beside, **{part: str(beside.parent / "secret")}) == []
    if part != "implementation":
        case = {"machine": GPU, "operator": "softmax", part: name}
        assert profiles_of(beside, case["machine"], case["operator"]) == []


@pytest.mark.parametrize("level", ["file", "implementation", "operator", "profiles", "machine"])
def test_no_link_of_the_file_system_is_followed(tmp_path: Path, level: str) -> None:
    elsewhere, results = tmp_path / "elsewhere", tmp_path / "results"
    real = write(elsewhere)
    depth = ["file", "implementation", "operator", "profiles", "machine"].index(level)
    target = real if depth == 0 else real.parents[depth - 1]
    link = results / target.relative_to(elsewhere)
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    assert (results / real.relative_to(elsewhere)).read_text() == real.read_text()
    assert found(results) == []
    assert profiles_of(results, GPU, "softmax") == []


def test_a_file_that_became_a_link_is_not_read(tmp_path: Path) -> None:
    path = write(tmp_path)
    (one,) = found(tmp_path)
    (tmp_path / "secret").write_text("SECRET")
    path.unlink()
    path.symlink_to(tmp_path / "secret")
    with pytest.raises(UserError, match="cannot be read"):
        text_of(one)


@pytest.mark.parametrize("part", [*CASE, "machine", "commit", "tool"])
def test_no_address_of_the_page_leads_out(held: Path, kept: Store, part: str) -> None:
    """As a browser sends it: percent-encoded once, and once more."""
    secret = held.parent / "secret"
    secret.mkdir(exist_ok=True)
    for folder in (held, held.parent, secret):
        (folder / "float32-M=4096,N=1024-968ac8c4-ncu.md").write_text("- SECRET\n")
    for name in (*OUT, str(secret), "../../../../secret"):
        for value in (name, quote(name, safe="", errors="surrogatepass")):
            query = urlencode({"machine": GPU, **CASE, part: value}, errors="surrogatepass")
            state = parse_state("/profile", f"?{query}")
            text = shown(kept, state.page, **state.params)
            assert "SECRET" not in text and FAILED not in text, value
            unasked = part in ("machine", "commit", "tool") and not value  # left out: the newest
            assert unasked or part == "machine" or "No such profile" in text, value


@pytest.mark.parametrize("path", ["/profile/../../secret", "/profile/%2e%2e/triage.jsonl", "/profile/%2Fetc%2Fpasswd"])
def test_no_path_below_the_page_is_served(kept: Store, path: str) -> None:
    client = make_app(kept).server.test_client()
    assert client.get("/profile").status_code == 200
    answer = client.get(path)
    assert answer.status_code == 404
    assert "react-entry-point" in answer.get_data(as_text=True)


def test_a_measurement_offers_its_profiles(profiled: Path) -> None:
    store = open_store(profiled)
    text = shown(store, "samples", machine=GPU, **CASE)
    commit, before = commit_hash(1)[:8], commit_hash(0)[:8]
    assert f" by ncu, commit {commit}, 2026-04-06 10:00 UTC" in text
    assert "The L2 cache bounds it: 93 % of peak, triton_row<float> at 86 %." in text
    write(profiled, 0, "nsys", "2026-04-07 10:00")
    text = shown(store, "samples", machine=GPU, **CASE)  # there without a refresh: nothing is kept
    newest = f" by nsys, commit {before}; this measurement is of {commit}, 2026-04-07 10:00 UTC"
    assert text.index(newest) < text.index(" by ncu")
    for others in ({"dtype": "float16"}, {"implementation": "cuda_vec4"}, {"machine": "cpu-synthetic"}):
        assert " by ncu" not in shown(store, "samples", **{"machine": GPU, **CASE, **others})


def test_many_are_folded(profiled: Path) -> None:
    for hour in range(10, 18):
        write(profiled, hour, taken=f"2026-05-01 {hour}:00")
    assert "4 older" in shown(open_store(profiled), "samples", machine=GPU, **CASE)


def test_an_operator_lists_its_profiles_and_its_filters_count(kept: Store) -> None:
    wide = "The L2 cache bounds it"
    assert wide in shown(kept, "operator", machine=GPU, operator="softmax", dtype="float32", show="triton_row")
    for others in ({"operator": "relu"}, {"dtype": "float16"}, {"show": "cuda_vec4"}, {"machine": "cpu-synthetic"}):
        assert wide not in shown(kept, "operator", **{"machine": GPU, "operator": "softmax", **others})


def test_the_page_shows_the_newest_or_the_one_that_is_asked_for(profiled: Path) -> None:
    write(profiled, 0, "nsys", "2026-04-07 10:00")
    store = open_store(profiled)
    newest = shown(store, "profile", machine=GPU, **CASE)
    assert "Synthetic GPU, nsys 2025.3" in newest and "Other profiles of this case" in newest
    assert "# softmax/" not in newest  # it is the page's own heading
    asked = shown(store, "profile", machine=GPU, **CASE, commit=commit_hash(1)[:8], tool="ncu")
    assert "Synthetic GPU, ncu 2025.3" in asked and "Profile of softmax/triton_row" in asked


def test_a_page_without_its_file_says_so(kept: Store) -> None:
    asked = {"machine": GPU, **CASE, "commit": "deadbeef", "tool": "nsys"}
    text = shown(kept, "profile", **asked)
    assert "hold no profile by nsys of commit deadbeef of softmax/triton_row on float32 M=4096,N=1024" in text
    assert "its file does not exist any more" in text
    assert " by ncu" in text  # the other one of the case


def test_an_exported_file_leaves_profiles_out(held: Path, kept: Store) -> None:
    frames = Library(kept).current()
    state = State("operator", {"machine": GPU, "operator": "softmax"})
    drawn = OPERATOR.draw(state, resolve(state, frames), frames, held.parent)
    whole = to_html(drawn, lambda href: "#x")
    assert "Best by size" in whole
    assert "Profile" not in whole and "L2 cache bounds" not in whole


def test_links_pictures_and_tags_are_only_text() -> None:
    text = inert(HOSTILE)
    assert not set("<[") & set(text)
    assert "://" not in text and "mailto:" not in text
    plain = PAGE.format(tool="ncu", commit="968ac8c4", taken="2026-04-06 10:00")
    assert inert(plain) == plain


@pytest.mark.browser
def test_from_a_measurement_to_its_profile_and_back(fresh_site: Site, watched: Watched) -> None:
    write(fresh_site.results, 6)
    page = watched.open(f"{fresh_site.address}operator?operator=softmax&dtype=float32")
    page.locator('.matrix td a[title^="triton_row, float32 M=4096,N=1024:"]').click()
    page.locator("h1", has_text="softmax triton_row").wait_for()
    page.get_by_role("link", name="Profile", exact=True).click()
    page.locator("h1", has_text="Profile of softmax/triton_row").wait_for()
    expect(page.locator(".text li").first).to_have_text(
        "The L2 cache bounds it: 93 % of peak, triton_row<float> at 86 %."
    )
    expect(page.locator(".text h2")).to_have_text("kernel 1: softmax_row")
    expect(page.locator(".text td")).to_have_text(["duration", "123 µs"])
    assert page.title() == "Profile · softmax · groundspeed"
    page.reload()
    page.locator(".text td").first.wait_for()
    page.get_by_role("link", name="measurement").click()
    page.locator("h1", has_text="softmax triton_row").wait_for()
    page.go_back()
    page.locator(".text td").first.wait_for()
    write(fresh_site.results, 6).unlink()
    page.reload()
    page.locator("h2", has_text="No such profile").wait_for()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_profile_is_readable_in_every_light_and_width(
    fresh_site: Site, watched: Watched, axe: str, scheme: str
) -> None:
    write(fresh_site.results, 6, text=PAGE.format(tool="ncu", commit="x" * 90, taken="2026-04-06 10:00"))
    watched.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page = watched.open(f"{fresh_site.address}profile?{urlencode(CASE)}")
    page.locator(".text td").first.wait_for()
    page.evaluate(axe)
    faults = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    assert not [fault["id"] for fault in faults if fault["impact"] in ("serious", "critical")]
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.browser
def test_what_a_page_holds_stays_text(fresh_site: Site, watched: Watched) -> None:
    write(fresh_site.results, 6, text=HOSTILE)
    page = watched.open(f"{fresh_site.address}profile?{urlencode(CASE)}")
    page.locator(".text li").first.wait_for()
    page.wait_for_load_state("networkidle")
    assert page.locator(".text :is(a, img, script, iframe, svg, [onerror])").count() == 0
    assert page.evaluate("window.hurt") is None
    text = page.locator(".text").inner_text()
    assert "<script>window.hurt = 1</script>" in text
    assert "[a](javascript:alert(1))" in text and "https://example.org/e" in text
