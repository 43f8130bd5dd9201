from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from dashboard import history_command
from dashboard.frames import Frames
from dashboard.regressions import find_changes, grouped, is_open, known_environments
from dashboard.store import open_store
from groundspeed.errors import UserError
from groundspeed.revisions import since
from tests.dashboard.make_results import write_results


def history(*words: str) -> int:
    parser = argparse.ArgumentParser()
    history_command.add_arguments(parser)
    return history_command.run(parser.parse_args(words))


def test_the_planted_regression_is_named_with_its_commits(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert history("--results", str(results), "--format", "json", "--worse") == 0
    document = json.loads(capsys.readouterr().out)
    (change,) = [one for one in document["changes"] if not one["environment"]]
    assert change["worse"] == pytest.approx(0.09, abs=0.01)
    assert {one["implementation"] for one in change["series"]} == {"triton_row"}
    assert all(one["last_good"] != one["by"] and one["kind"] == "step" for one in change["series"])


def test_the_table_and_its_markdown_twin(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert history("softmax", "--results", str(results)) == 0
    head, columns, first, *_ = capsys.readouterr().out.splitlines()
    assert head.startswith("Device time, cold L2 on synthetic-gpu (GPU: Synthetic GPU), ")
    assert columns.split()[:2] == ["operator", "implementation"] and first.split()[:2] == ["softmax", "triton_row"]
    assert history("softmax", "--results", str(results), "--format", "md") == 0
    assert "| softmax | triton\\_row" in capsys.readouterr().out.replace("triton_row", "triton\\_row")


def test_no_changes_are_said(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert history("relu", "--results", str(results)) == 0
    assert capsys.readouterr().out.endswith("no changes of level\n")


@pytest.mark.parametrize("words", [("nope",), ("--machine", "x"), ("--metric", "speed")])
def test_unknown_names_list_the_known(results: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match="expected one of"):
        history(*words, "--results", str(results))


def test_since_takes_the_commits_that_git_names(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        return subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    for name in "abc":
        git("commit", "-q", "--allow-empty", "-m", name)
    assert len(since(tmp_path, "HEAD~2")) == 2
    assert since(tmp_path, "HEAD") == frozenset()
    with pytest.raises(UserError, match="no revision 'v9'"):
        since(tmp_path, "v9")


def test_a_changed_environment_is_an_event_and_no_regression(results: Path) -> None:
    frames = Frames(open_store(results).snapshot)
    environments = known_environments(frames)
    rows = frames.of("synthetic-gpu", "groundspeed")
    honest = grouped(find_changes(rows, "device_cold", environments))
    (group,) = [one for one in honest if one.worse > 0]
    assert group.environment == "" and is_open(group, {})
    last_good = group.first.last_good
    times = {row["source"]: (row["commit_time"], row["commit"]) for row in rows.collect().to_dicts()}
    until = next(time for time, commit in times.values() if commit == last_good)
    old = {source for source, (time, _) in times.items() if time <= until}
    driver = {source: json.dumps({"driver": "1" if source in old else "2"}) for source in environments}
    same = rows.with_columns(implementation_digest=_constant("same"))
    (moved,) = [one for one in grouped(find_changes(same, "device_cold", driver)) if one.worse > 0]
    assert moved.environment == "driver" and not is_open(moved, {})
    (own,) = [one for one in grouped(find_changes(same, "device_cold", environments)) if one.worse > 0]
    assert own.environment == "" and is_open(own, {})


def _constant(word):
    import polars as pl

    return pl.lit(word)


def test_results_without_a_second_level(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_results(tmp_path / "results")
    shutil.rmtree(folder / "synthetic-gpu")
    with pytest.raises(UserError, match="expected one of cpu-synthetic"):
        history("--results", str(folder), "--machine", "synthetic-gpu")
