"""What lets every folder of tests run in one session."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def test_one_fixture_alone_starts_playwright() -> None:
    """A second one in the same session fails: the first keeps an event loop running in the thread."""
    of_sessions = [path for path in TESTS.rglob("*.py") if path.name == "conftest.py" or path.name.startswith("test_")]
    start = "sync_" + "playwright()"
    assert [path for path in of_sessions if start in path.read_text(encoding="utf-8")] == []


def test_benchmarks_wait_until_they_are_asked_for() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/perf"]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True)
    summary = done.stdout.strip().splitlines()[-1]
    assert done.returncode == 0, done.stdout
    assert "skipped" in summary and not {"passed", "failed", "error"} & set(summary.replace(",", "").split())
