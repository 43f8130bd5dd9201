"""A soak that is interrupted: one line, its workers ended, what was judged kept and in the table."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from groundspeed.fleet.local_cluster import descendants
from groundspeed.gate.soak_record import BEGIN, END, read
from tests.cli import toy_project
from tests.paths import python_path
from tests.processes import is_alive, wait_for


@pytest.fixture
def project(tmp_path):
    root = toy_project.make(tmp_path / "p", double={}, wide={})
    (root / "docs").mkdir()
    (root / "docs/gating.md").write_text(f"{BEGIN}\n{END}\n")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "Start"]):
        who = ["-c", "user.name=A Tester", "-c", "user.email=tester@example.org"]
        subprocess.run(["git", *who, *words], cwd=root, check=True)
    return root


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_soak_in_one_line_and_keeps_what_was_judged(project, number):
    words = ["-m", "groundspeed.gate.soak", "--device", "cpu", "--tier", "small", "--runs", "50"]
    process = subprocess.Popen(
        [sys.executable, *words],
        cwd=project,
        env={**os.environ, "PYTHONPATH": python_path()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline().startswith("double: 7 compared")
    wait_for(lambda: len(descendants(process.pid)) > 1)  # a nursery, and its worker
    workers = descendants(process.pid)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in said, said
    assert said.endswith("\ngroundspeed: interrupted; what was judged is kept: type it again to go on\n")
    assert workers
    wait_for(lambda: not any(map(is_alive, workers)))
    kept = read(project / "results")
    assert kept[0].operator == "double"
    assert f"| {kept[0].machine} | " in (project / "docs/gating.md").read_text()
