"""Ray clusters on this machine, each node with a CPU in the place of a GPU; skipped where Ray is not installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time

import pytest

from tests.paths import python_path

WHY = "needs ray: pip install 'groundspeed[fleet]'"
needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason=WHY)


class Driver:
    """A driver in a process of its own, its words in a file."""

    def __init__(self, words, log, cwd=None, **environment):
        self.log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, *words],
                stdout=file,
                stderr=file,
                cwd=cwd,
                env={**os.environ, "PYTHONPATH": python_path(), "GROUNDSPEED_DEVICE": "cpu", **environment},
            )

    @property
    def said(self):
        return self.log.read_text()

    def wait_for(self, text, seconds=90.0):
        deadline = time.monotonic() + seconds
        while text not in self.said:
            assert time.monotonic() < deadline and self.process.poll() is None, self.said
            time.sleep(0.02)

    def end(self, seconds=150.0):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(self.said) from None


@pytest.fixture
def driver(tmp_path):
    """Starts drivers, and ends those that still run when the test has ended."""
    started = []

    def start(*words, **more):
        started.append(Driver(words, tmp_path / f"log-{len(started)}", **more))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


@pytest.fixture(scope="session")
def cluster():
    """Three nodes. A test that takes one away puts another in its place."""
    pytest.importorskip("ray", reason=WHY)
    from groundspeed.fleet.local_cluster import QUICK, local_cluster

    before = {name: os.environ.get(name) for name in QUICK}
    try:
        with local_cluster(3, client=True) as found:
            yield found
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@pytest.fixture
def synthetic(cluster, driver, tmp_path):
    """Start a synthetic run on the cluster: (run id, further words) → driver."""

    def start(run, *words, fleet=cluster.address, **environment):
        where = ["--fleet", fleet, "--results", str(tmp_path / "results"), "--run", run]
        return driver("-m", "groundspeed.fleet.synthetic", *where, *words, **environment)

    return start


def stations():
    """Process ids of this test process's stations."""
    from groundspeed.fleet.local_cluster import descendants

    return sorted(pid for pid, line in descendants(os.getpid()).items() if "ray::Station" in line)
