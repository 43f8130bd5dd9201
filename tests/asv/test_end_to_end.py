"""asv over two commits with the real engine on the CPU: what asv files is what the records hold."""

from __future__ import annotations

import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from groundspeed.records import Measurement, Record
from tests.asv.scratch import ResultFile, Scratch, make_scratch

SMALL = {"GROUNDSPEED_DEVICE": "cpu", "GROUNDSPEED_TIER": "small"}
NANO = 1e-9


@pytest.fixture
def project(tmp_path: Path) -> Scratch:
    return make_scratch(tmp_path, ("relu", "softmax"))


@pytest.mark.slow
def test_two_commits_are_run_shown_compared_and_published(project: Scratch) -> None:
    project.implementation("softmax", "torch_where", expression="torch.where(x > 0, x, torch.zeros_like(x))")
    first = project.commit("with torch_where")
    project.remove("impls/softmax/torch_where.py")
    project.implementation("softmax", "torch_relu", expression="torch.relu(x)")
    project.implementation("softmax", "torch_wrong", expression="x + 1")
    second = project.commit("torch_relu for torch_where, and a wrong one")

    output = project.asv("run", **SMALL)
    assert "incorrect" in output
    output = project.asv("continuous", "--bench", "softmax", first, second, expect=None, **SMALL)
    assert "BENCHMARKS" in output  # its verdict, whichever: the machine is not quiet
    assert "torch_where" not in output  # not among today's files

    newest: dict[tuple[str, str], Record] = {}
    for record in project.records():
        newest[record.header.commit, record.header.operator] = record
    assert set(newest) == {(second, "relu"), (first, "softmax"), (second, "softmax")}
    for (commit, operator), record in newest.items():
        (path,) = project.root.glob(f"results/*/{commit[:8]}-*.json")
        assert path.parent.name == record.header.machine
        same_numbers(ResultFile.read(path), operator, record)
    assert {m.implementation: m.status for m in newest[second, "softmax"].measurements} == {
        "torch_eager": "ok",
        "torch_relu": "ok",
        "torch_wrong": "failed",
    }

    compared = project.asv("compare", first, second)
    row = next(line for line in compared.splitlines() if "cold('torch_relu', 'float32', 'N=1024')" in line)
    assert "n/a" in row  # it came with the second commit
    assert "device_time.softmax.cold" in project.asv("show", second)
    project.asv("publish")
    index = json.loads((project.root / ".asv/html/index.json").read_text())
    assert set(index["benchmarks"]) >= {"device_time.softmax.cold", "first_call.relu", "peak_memory.softmax"}


def same_numbers(values: ResultFile, operator: str, record: Record) -> None:
    measured = {(m.implementation, m.dtype, m.shape_label): m for m in record.measurements}
    samples = {"device_time.{}.cold": "device_cold", "device_time.{}.hot": "device_hot", "call_time.{}": "call"}
    for question, quantity in samples.items():
        for key, value in values.column(question.format(operator), "result").items():
            measurement = measured.get(key)
            if agrees_on_absence(measurement, value):
                continue
            assert measurement is not None
            assert value == pytest.approx(NANO * statistics.median(measurement.samples[quantity]), rel=1e-9)
    for key, value in values.column(f"first_call.{operator}", "result").items():
        if not agrees_on_absence(measured.get(key), value):
            assert value == pytest.approx(NANO * measured[key].first_call_ns, rel=1e-9)
    for key, value in values.column(f"error.{operator}", "result").items():
        if not agrees_on_absence(measured.get(key), value):
            assert value == measured[key].accuracy.norm


def agrees_on_absence(measurement: Measurement | None, value: float | None) -> bool:
    """Whether there is no number on either side; a number on one side only fails."""
    if measurement is not None and measurement.status == "ok":
        assert value is not None
        assert not math.isnan(value)
        return False
    if measurement is not None and measurement.status == "failed":
        assert value is None
    else:
        assert value is not None
        assert math.isnan(value)
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="finds the worker through /proc")
def test_an_interrupted_run_leaves_no_worker(project: Scratch) -> None:
    asleep = project.root / "asleep"
    sleeper = (
        '"""Sleeps where it should compute."""\n\nimport pathlib\nimport time\n\n\ndef prepare(x):\n'
        f"    pathlib.Path({str(asleep)!r}).touch()\n    time.sleep(600)\n"
    )
    project.write("impls/softmax/torch_sleeps.py", sleeper)
    project.commit("an implementation that hangs")
    arguments = [sys.executable, "-m", "asv", "run", "--bench", "softmax"]
    environment = {**project.environment(), **SMALL}
    run = subprocess.Popen(
        arguments, cwd=project.root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        wait_until(asleep.exists, "a worker fell asleep")
        assert workers(project)
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=30) != 0
        wait_until(lambda: not workers(project), "the worker ended")
    finally:
        run.kill()
        run.communicate()
        for pid in workers(project):
            os.kill(pid, signal.SIGKILL)


def workers(project: Scratch) -> list[int]:
    """Processes that work for this project: their environment names its results."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command, environment = (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes()
        except OSError:
            continue  # it ended, or is another user's
        if b"groundspeed.measure.worker" in command and str(project.root / "results").encode() in environment:
            found.append(int(folder.name))
    return found


def wait_until(condition: Callable[[], object], what: str, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds:.0f} s for: {what}"
        time.sleep(0.1)
