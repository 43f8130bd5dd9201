"""tools/record.sh: which commands it gives, in which order, and what becomes of them when the time is up."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.toy_project import ROOT

STUB = """#!/usr/bin/env bash
echo "$*" >> "$CALLS"
case "$*" in *sanitize*) exit 1 ;; esac
"""


@pytest.fixture
def record(tmp_path: Path):
    stub, calls = tmp_path / "python", tmp_path / "calls"
    stub.write_text(STUB)
    stub.chmod(0o755)
    calls.touch()

    def run(*words: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
        environment = os.environ | {"PYTHON": str(stub), "CALLS": str(calls)}
        command = ["bash", str(ROOT / "tools" / "record.sh"), *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        return done, calls.read_text().splitlines()

    return run


def test_steps_are_done_in_the_order_given(record):
    done, calls = record("small", "core", "tests")
    assert done.returncode == 0, done.stderr
    assert calls == [*["-m groundspeed run --tier small"] * 4, "-m groundspeed run --tier core", "-m pytest -q -m gpu"]


def test_the_soak_shares_the_operators_out_within_the_time(record):
    done, calls = record("--minutes", "2", "soak")
    assert done.returncode == 0
    assert [call.split("--part ")[1][:3] for call in calls] == ["1/3", "2/3", "3/3"]
    assert all(100 < int(call.rsplit(" ", 1)[1].removesuffix("s")) <= 120 for call in calls)


def test_a_step_that_fails_hides_none_after_it(record):
    done, calls = record("sanitize", "calibrate")
    assert done.returncode == 1 and "status 1" in done.stdout
    assert calls[-1] == "-m groundspeed calibrate"


def test_nothing_is_begun_when_the_time_is_up(record):
    done, calls = record("--minutes", "0", "core", "checks")
    assert (done.returncode, calls) == (0, [])
    assert done.stdout.count("no time left") == 2


@pytest.mark.parametrize("words", [("--minutes", "soon"), ("--minutes",), ("everything",)])
def test_wrong_use_is_one_line(record, words):
    done, calls = record(*words)
    assert (done.returncode, calls, done.stdout) == (2, [], "")
    assert len(done.stderr.splitlines()) == 1
