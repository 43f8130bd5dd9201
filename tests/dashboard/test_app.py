"""The server without a browser: headers, paths, and every page over results of every kind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dash.development.base_component import Component

from dashboard.app import draw_view, make_app
from dashboard.frames import Library
from dashboard.pages import PAGES
from dashboard.regressions import prepare
from dashboard.state import State
from dashboard.store import Store, open_store
from dashboard.view import resolve
from tests.dashboard.make_results import write_results

FAILED = "This page failed"
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def texts(component: Any) -> Iterator[str]:
    """Every text of a component tree, tables and matrices included."""
    if component is None:
        return
    if isinstance(component, list | tuple):
        for child in component:
            yield from texts(child)
    elif isinstance(component, Component):
        properties = component.to_plotly_json()["props"]
        for name in ("data-table", "data-matrix", "data-select", "title"):
            if name in properties:
                yield str(properties[name])
        yield from texts(getattr(component, "children", None))
    else:
        yield str(component)


def constants(text: str) -> list[str]:
    """The NaN and Infinity in a JSON text, which browsers refuse."""
    found: list[str] = []
    json.loads(text, parse_constant=found.append)
    return found


def shown(store: Store, page: str, repository: Path = Path("."), **params: str) -> str:
    places = draw_view(Library(store), State(page, params), repository)["places"]
    return "\n".join(texts(list(places.values())))


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("machine", ["synthetic-gpu", "cpu-synthetic"])
def test_every_page_draws(store: Store, page: str, machine: str) -> None:
    text = shown(store, page, machine=machine)
    assert FAILED not in text
    assert ("GPU: Synthetic GPU" if machine == "synthetic-gpu" else "CPU: Synthetic CPU") in text


@pytest.mark.parametrize("metric", ["device_hot", "call", "bytes_per_s", "roofline", "peak_memory", "max_abs_error"])
@pytest.mark.parametrize("page", PAGES)
def test_every_page_draws_in_every_kind_of_metric(store: Store, page: str, metric: str) -> None:
    assert FAILED not in shown(store, page, metric=metric, dtype="float16")


@pytest.mark.parametrize("page", PAGES)
def test_every_page_survives_nonsense(store: Store, page: str) -> None:
    names = (
        "machine",
        "metric",
        "baseline",
        "dtype",
        "operator",
        "shape",
        "show",
        "axis",
        "left",
        "list",
        "by",
        "case",
    )
    text = shown(store, page, **dict.fromkeys(names, "<script>alert(1)</script>"))
    assert FAILED not in text


@pytest.mark.parametrize("page", PAGES)
def test_every_page_without_results(tmp_path: Path, page: str) -> None:
    text = shown(open_store(tmp_path), page, tmp_path)
    assert FAILED not in text
    assert "No " in text


def test_unknown_names_in_a_link_are_told(store: Store) -> None:
    assert "which these results do not have" in shown(store, "", machine="nvidia-h9000")
    assert "There is no page" in shown(store, "nowhere")


@pytest.mark.parametrize(("page", "end"), [("operator", "; matmul is shown."), ("history", "; matmul is shown.")])
def test_an_unknown_operator_is_named(store: Store, page: str, end: str) -> None:
    told = "The link asks for operator “sofmax”, which these results do not have"
    assert told + end in shown(store, page, operator="sofmax")
    assert told not in shown(store, page, operator="softmax")


@pytest.mark.parametrize("page", ["compare", "regressions", "roofline"])
def test_where_an_unknown_operator_is_a_filter_nothing_is_said_to_stand_for_it(store: Store, page: str) -> None:
    assert "operator “sofmax”, which these results do not have." in shown(store, page, operator="sofmax")


@pytest.mark.parametrize("page", ["", "operator", "history", "compare", "regressions", "samples"])
def test_times_of_a_cpu_are_wall_times(store: Store, page: str) -> None:
    one = {"operator": "softmax", "implementation": "torch_eager", "dtype": "float32", "shape": "M=4096,N=1024"}
    asked = one if page == "samples" else {}
    cpu, gpu = (shown(store, page, machine=name, **asked) for name in ("cpu-synthetic", "synthetic-gpu"))
    assert "Wall time, cold caches" in cpu and "Device time" not in cpu and "L2" not in cpu
    assert "Device time, cold L2" in gpu and "Wall time" not in gpu


@pytest.mark.parametrize("page", ["", "operator"])
def test_too_few_commits_are_not_taken_for_no_regression(tmp_path: Path, page: str) -> None:
    few, enough = (write_results(tmp_path / name, commits) for name, commits in (("few", 5), ("enough", 6)))
    for results, words in ((few, "too few commits to tell: 5 of the 6 that it takes"), (enough, "none known")):
        library = Library(open_store(results))
        prepare(resolve(State(page, {}), library.current()))
        text = "\n".join(texts(list(draw_view(library, State(page, {}), tmp_path)["places"].values())))
        assert words in text
        assert ("none known" in text) == (results is enough)


@pytest.mark.parametrize("kind", ["sunpy-benchmarks/results", "asv-example-results/test/example_results"])
@pytest.mark.parametrize("page", PAGES)
def test_results_of_other_projects(page: str, kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    if not (DATA / kind).is_dir():
        pytest.skip(f"needs {kind} in shared/data")
    folder = tmp_path_factory.getbasetemp() / kind.partition("/")[0]
    if not folder.exists():
        shutil.copytree(DATA / kind, folder)
    text = shown(open_store(folder), page, folder)
    assert FAILED not in text
    assert "torch_eager" not in text  # none of our words is forced on them


def test_bad_files_are_named_and_the_rest_is_shown(results: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(results, folder, ignore=shutil.ignore_patterns(".cache"))
    (folder / "box [1]").mkdir()
    (folder / "box [1]" / "abcdef-env.json").write_text('{"results": {"a": [1.0, ')
    record = next((folder / "synthetic-gpu" / "records").glob("*/softmax.jsonl.gz"))
    record.write_bytes(record.read_bytes()[:500])
    text = shown(open_store(folder), "data")
    assert "abcdef-env.json" in text
    assert record.parent.name in text
    assert "synthetic-gpu" in text


def test_headers(results: Path) -> None:
    client = make_app(open_store(results)).server.test_client()
    for path in ("/", "/operator", "/api/revision", "/health", "/assets/groundspeed.css", "/nothing/here"):
        headers = client.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self' 'sha256-" in policy
        assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_no_address_of_another_server_is_served(results: Path) -> None:
    page = make_app(open_store(results)).server.test_client().get("/").get_data(as_text=True)
    assert "https://" not in page.replace("https://dash.plotly.com/", "")


@pytest.mark.parametrize(
    "path", ["/assets/../app.py", "/assets/%2e%2e/app.py", "/../triage.jsonl", "/assets/..%2f..%2fpyproject.toml"]
)
def test_no_way_out_of_the_assets(results: Path, path: str) -> None:
    answer = make_app(open_store(results)).server.test_client().get(path)
    body = answer.get_data(as_text=True)
    assert "import dash" not in body
    assert "[project]" not in body


def test_health_and_base_path(results: Path) -> None:
    client = make_app(open_store(results), "/bench/").server.test_client()
    assert client.get("/bench/health").get_json()["status"] == "ok"
    assert client.get("/bench/api/revision").get_json()["revision"]
    assert client.get("/bench/operator").status_code == 200
    assert client.get("/health").status_code == 404


def test_a_results_folder_that_vanishes(results: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    store = open_store(folder)
    client = make_app(store).server.test_client()
    shutil.rmtree(folder)
    assert client.get("/api/revision").status_code == 200
    assert client.get("/health").get_json()["rows"] > 0
    assert str(folder) in shown(store, "data")


def test_the_served_json_has_no_nan(store: Store) -> None:
    from dash._utils import to_json

    for page in PAGES:
        text = to_json(draw_view(Library(store), State(page, {}), Path(".")))
        assert not constants(text), page


def test_claims_stand_beside_what_was_measured(store: Store, tmp_path: Path) -> None:
    ledger = tmp_path / "impls" / "claims.toml"
    ledger.parent.mkdir()
    claim = (
        '[[claim]]\nsource = "a page"\nclaim = "{}"\ngpu = "V100"\npublished = [{}]\n'
        'operator = "{}"\nimplementation = "{}"\n'
    )
    ledger.write_text(
        claim.format("vectors double it", "1.5, 2.0", "relu", "cuda_vec4")
        + claim.format("ten times", "10.0, 10.0", "relu", "triton_row")
        + claim.format("of something else", "2.0, 2.0", "nothing_of_ours", "cuda_x")
    )
    text = shown(store, "claims", tmp_path)
    assert "3 claims, 2 with a figure of ours" in text
    assert "✓✓ exceeded, other GPU" in text
    assert "✕ not reproduced, other GPU" in text
    assert "– not measured" in text
    assert "15 cases" in text
    ledger.write_text("[[claim]\n")
    assert "cannot be used" in shown(store, "claims", tmp_path)


@pytest.mark.parametrize("base", ["/", "/bench/"])
def test_a_page_that_is_none_is_404(results: Path, base: str) -> None:
    client = make_app(open_store(results), base).server.test_client()
    nowhere = client.get(f"{base}nope")
    assert nowhere.status_code == 404
    assert "react-entry-point" in nowhere.get_data(as_text=True)
    assert {page: client.get(f"{base}{page}").status_code for page in PAGES} == dict.fromkeys(PAGES, 200)
    assert client.get(f"{base}operator/?operator=softmax").status_code == 200
    assert client.get(f"{base}_dash-layout").status_code == 200
