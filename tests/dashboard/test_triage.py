from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest

from dashboard import triage
from groundspeed.errors import UserError

KEY = "0123456789abcdef"


def _append_many(results: Path, who: str, count: int) -> None:
    for index in range(count):
        triage.append(results, f"{index:016x}", "acknowledged", f"note {index} " + "x" * 1500, who)


def test_the_last_decision_holds_and_all_are_kept(tmp_path: Path) -> None:
    triage.append(tmp_path, KEY, "acknowledged", "", "ada", "softmax triton_row")
    triage.append(tmp_path, KEY, "expected", "wider vectors cost 1 %", "bob")
    events, problems = triage.read(tmp_path)
    assert [event.state for event in events] == ["acknowledged", "expected"]
    assert triage.state_of(triage.current(tmp_path), KEY) == "expected"
    assert triage.state_of(triage.current(tmp_path), "f" * 16) == "new"
    assert not problems


def test_two_who_write_at_once_lose_nothing(tmp_path: Path) -> None:
    writers = [multiprocessing.Process(target=_append_many, args=(tmp_path, who, 60)) for who in ("ada", "bob", "eve")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    events, problems = triage.read(tmp_path)
    assert not problems
    assert sorted((event.who, event.key) for event in events) == sorted(
        (who, f"{index:016x}") for who in ("ada", "bob", "eve") for index in range(60)
    )


def test_lines_of_two_branches_merge_in_any_order(tmp_path: Path) -> None:
    triage.append(tmp_path, KEY, "acknowledged", "", "ada")
    triage.append(tmp_path, KEY, "fixed", "", "bob")
    path = tmp_path / triage.FILE
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    assert triage.state_of(triage.current(tmp_path), KEY) == "fixed"


def test_a_damaged_line_is_told_and_the_rest_shown(tmp_path: Path) -> None:
    triage.append(tmp_path, KEY, "acknowledged", "", "ada")
    path = tmp_path / triage.FILE
    path.write_text(path.read_text() + '{"key": "trunc\n<<<<<<< HEAD\n' + json.dumps({"version": 9}) + "\n[1]\n")
    events, problems = triage.read(tmp_path)
    assert len(events) == 1
    assert [problem.split(":")[1] for problem in problems] == ["2", "3", "4", "5"]


@pytest.mark.parametrize(
    ("key", "state", "note"),
    [("../../x", "new", ""), (KEY, "closed", ""), (KEY, "noise", "  "), (KEY, "expected", "")],
)
def test_what_cannot_be_recorded(tmp_path: Path, key: str, state: str, note: str) -> None:
    with pytest.raises(UserError):
        triage.append(tmp_path, key, state, note, "ada")
    assert not (tmp_path / triage.FILE).exists()
