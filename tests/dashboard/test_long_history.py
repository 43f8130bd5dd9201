"""Pages over a history that is longer than a chart shows well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dashboard.app import draw_view
from dashboard.frames import Library
from dashboard.pages import data, history
from dashboard.state import State
from dashboard.store import open_store
from tests.store import make


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    """Twelve commits, of which three are drawn unless more are asked for."""
    monkeypatch.setattr(history, "NEWEST", 3)
    monkeypatch.setattr(history, "MORE", (6, 100))
    monkeypatch.setattr(data, "NEWEST", 5)
    for number in range(12):
        day = f"2026-01-{number + 1:02}"
        when = {"commit_time": f"{day}T00:00:00+00:00", "started": f"{day}T01:00:00+00:00"}
        rows = [make.measurement(name, time=1000.0 + number) for name in ("torch_eager", "triton_row")]
        make.record(tmp_path, *rows, run_id=f"run{number:02}", commit=f"{number:040x}", **when)
    return Library(open_store(tmp_path))


def _main(library: Library, page: str, **params: str) -> str:
    view = draw_view(library, State(page, params), Path(__file__).parent)

    def plain(part: Any) -> Any:
        return part.to_plotly_json() if hasattr(part, "to_plotly_json") else str(part)

    return json.dumps(view["places"]["main"], default=plain)


@pytest.mark.parametrize(("asked", "count"), [("", 3), ("6", 6), ("12", 12), ("nonsense", 3), ("99999", 12)])
def test_the_newest_commits_are_drawn_and_more_if_asked_for(library: Library, asked: str, count: int) -> None:
    drawn = _main(library, "history", operator="softmax", **({"last": asked} if asked else {}))
    assert [n for n in range(12) if f"run{n:02}" in drawn] == list(range(12 - count, 12))
    for text in ("newest 3", "newest 6", "all 12"):
        assert text in drawn


def test_a_short_history_has_nothing_to_choose(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "NEWEST", 12)
    assert "select-last" not in _main(library, "history", operator="softmax")


def test_the_newest_files_are_listed_and_the_others_counted(library: Library) -> None:
    listed = _main(library, "data")
    assert "The newest 5 of 12 files." in listed and "run11" in listed and "records/run02" not in listed
