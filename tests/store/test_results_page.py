"""docs/results.md: what it says to type works as typed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dashboard.store import open_store
from tests.store import make

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/results.md").read_text(encoding="utf-8")
ONCE, AFTER_A_RUN, ELSEWHERE = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """Makes clones of one bare repository: ``clone(name)``; ``clone.sh(folder, script)`` runs a script in one."""
    command = tmp_path / "bin" / "groundspeed"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m groundspeed "$@"\n')
    command.chmod(0o755)
    for name, value in {
        "HOME": str(tmp_path),
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "GROUNDSPEED_CACHE": str(tmp_path / "cache"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }.items():
        monkeypatch.setenv(name, value)

    def sh(folder: Path, script: str) -> str:
        done = subprocess.run(["sh", "-ec", script], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    def make_clone(name: str) -> Path:
        sh(tmp_path, f"git clone -q origin.git {name}")
        return tmp_path / name

    make_clone.sh = sh
    sh(tmp_path, "git init -q --bare -b main origin.git && git clone -q origin.git first")
    return make_clone


def _record(folder: Path, name: str, time: float) -> Path:
    return make.record(folder / "results", make.measurement(time=time), run_id=f"20260101T000000Z-01234567-{name}")


@pytest.fixture
def first(clone, tmp_path):
    """A clone whose results are committed beside the code, with a cache that is not."""
    folder = tmp_path / "first"
    (folder / ".gitignore").write_text("results/.cache/\n")
    _checkout(folder)
    _record(folder, "aaaa", 100.0)
    open_store(folder / "results")
    clone.sh(
        folder, "git add -A && git commit -qm Begin && git push -q origin HEAD:main && git branch -q -u origin/main"
    )
    return folder


def _checkout(folder: Path) -> None:
    """What makes a folder one of groundspeed's."""
    (folder / "asv.conf.json").write_text("{}")
    (folder / "impls").mkdir()
    (folder / "impls" / "code.py").write_text("pass\n")


def test_results_move_to_a_branch_and_stay_where_they_are(clone, first):
    clone.sh(first, ONCE)
    assert clone.sh(first, "git ls-files results") == "" and clone.sh(first, "git status --porcelain") == ""
    assert open_store(first / "results").snapshot.measurements.height == 1
    assert clone.sh(first, "git fetch -q && git ls-tree -r --name-only origin/results").split() == [
        "nvidia-h200/records/20260101T000000Z-01234567-aaaa/softmax.jsonl.gz"
    ]
    assert clone.sh(first, "git merge-base main origin/results || echo none").strip() == "none"


def test_two_clones_push_at_once_and_nothing_is_lost(clone, first):
    clone.sh(first, f"{ONCE}git push -q origin main")
    second = clone("second")
    assert not (second / "results").exists()
    clone.sh(second, ELSEWHERE)
    for folder, name in ((first, "bbbb"), (second, "cccc")):
        _record(folder, name, 200.0)
    at_once = [threading.Thread(target=clone.sh, args=(folder, AFTER_A_RUN)) for folder in (first, second)]
    for thread in at_once:
        thread.start()
    for thread in at_once:
        thread.join()
    third = clone("third")
    clone.sh(third, ELSEWHERE)
    snapshot = open_store(third / "results").snapshot
    assert sorted(run[-4:] for run in snapshot.measurements["run_id"]) == ["aaaa", "bbbb", "cccc"]
    assert snapshot.problems.is_empty()


def test_a_branch_may_begin_with_the_first_run(clone, tmp_path):
    """Nothing committed before, and nothing to move."""
    folder = tmp_path / "first"
    _checkout(folder)
    begin = "git add -A && git commit -qm Begin && git push -q origin HEAD:main && git branch -q -u origin/main"
    clone.sh(folder, f"echo /results/ >> .gitignore && {begin}")
    _record(folder, "aaaa", 100.0)
    clone.sh(folder, AFTER_A_RUN)
    assert "softmax.jsonl.gz" in clone.sh(folder, "git fetch -q && git ls-tree -r --name-only origin/results")


def test_the_few_lines_that_read_records_work(tmp_path):
    (lines,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    make.record(tmp_path / "results", make.measurement())
    done = subprocess.run(
        [sys.executable, "-c", lines], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.stdout == f"{make.COMMIT} softmax 1\n", done.stderr


def test_every_folder_it_names_is_one_that_something_writes():
    """And everything that is written into a machine's folder is named."""
    named = set(re.findall(r"`(?:<machine>/)?([a-z-]+)/`", PAGE.partition("## A record")[0]))
    from dashboard.store.files import _NO_RECORDS

    assert named >= _NO_RECORDS
    for folder in _NO_RECORDS:
        assert subprocess.run(["git", "grep", "-q", f'"{folder}"', "--", "groundspeed"], cwd=ROOT).returncode == 0, (
            folder
        )
