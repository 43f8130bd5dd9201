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
    with pytest.raises(UserError, match=r": (there are|did you mean) "):
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
    with pytest.raises(UserError, match="did you mean 'cpu-synthetic'"):
        history("--results", str(folder), "--machine", "synthetic-gpu")


LONG = "benchmarks_for_resample_and_more_than_that.TimeSuite.time_resample_of_a_long_series"


def foreign(results: Path) -> Path:
    """An asv project's results: a long name, ten commits at one level and ten at half more."""
    folder = results / "box"
    folder.mkdir(parents=True)
    (results / "benchmarks.json").write_text(json.dumps({LONG: {"unit": "seconds", "type": "time"}, "version": 2}))
    (folder / "machine.json").write_text(json.dumps({"machine": "box", "cpu": "a CPU", "version": 1}))
    for number in range(20):
        commit = f"{number:08x}" * 5
        document = {
            "commit_hash": commit,
            "env_name": "virtualenv-py3.12-with-a-long-name-of-packages",
            "date": 1700000000000 + 86400000 * number,
            "params": {"machine": "box"},
            "python": "3.12",
            "result_columns": ["result"],
            "results": {LONG: [[(1.0 if number < 10 else 1.5) + 0.001 * (number % 3)]]},
            "version": 2,
        }
        (folder / f"{commit[:8]}-env.json").write_text(json.dumps(document))
    return results


def test_text_fits_80_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert history("--results", str(foreign(tmp_path / "results")), "--metric", "value") == 0
    lines = capsys.readouterr().out.splitlines()
    (entry,) = [line for line in lines if line.startswith("benchmarks_for")]
    assert max(map(len, lines)) <= 80
    assert "…" in entry and "worse" in entry
    assert any("1.00 s → 1.50 s, between" in line for line in lines)


def test_without_the_usual_metric_the_first_with_values_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = foreign(tmp_path / "results")
    assert history("--results", str(results), "--format", "json") == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["metric"] == "value" and json.loads(told.out)["changes"]
    assert told.err.startswith("groundspeed: no value of device_cold on box: value is shown")
    with pytest.raises(UserError, match="no value of device_hot on box; metrics with values: value"):
        history("--results", str(results), "--metric", "device_hot")


def test_since_outside_a_checkout_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no git checkout"):
        since(tmp_path, "HEAD~2")


def test_damaged_records_are_named(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "results"
    shutil.copytree(results, folder, ignore=shutil.ignore_patterns(".cache"))
    record = next((folder / "synthetic-gpu" / "records").glob("*/softmax.jsonl.gz"))
    record.write_bytes(record.read_bytes()[:500])
    assert history("--results", str(folder)) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"groundspeed: {record.relative_to(folder)}: ")
