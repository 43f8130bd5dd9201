"""The bridge on a GPU: spans of kernels, not the host's time for launching them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.cli.toy_project import ROOT
from tests.paths import python_path

pytest.importorskip("pytest_benchmark")
pytestmark = pytest.mark.gpu

OWN_TEST = """
import torch

def test_relu(gpu_benchmark):
    x = torch.randn(1 << 24, device="cuda")
    y = gpu_benchmark(torch.relu, x)
    assert torch.equal(y, x.clamp(min=0))

def test_nothing(gpu_benchmark):
    gpu_benchmark(lambda: 1)
"""


def run(cwd, *arguments):
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "groundspeed.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "--benchmark-only",
    ]
    env = {**os.environ, "PYTHONPATH": python_path(), "GROUNDSPEED_TIER": "core"}
    return subprocess.run([*command, *arguments], cwd=cwd, env=env, capture_output=True, text=True, timeout=500)


def test_a_function_is_timed_by_its_kernels(tmp_path):
    (tmp_path / "test_own.py").write_text(OWN_TEST)
    done = run(tmp_path, "--benchmark-json=out.json")
    assert "launched no kernel" in done.stdout
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    (entry,) = json.loads((tmp_path / "out.json").read_text())["benchmarks"]
    # 128 MiB in all: between the time at 10 TB/s, which no GPU reaches, and at 0.3 TB/s
    assert 13e-6 < entry["stats"]["median"] < 450e-6
    assert len(entry["extra_info"]["kernels"]) == 1 and entry["extra_info"]["timer"] == "cupti"


def test_an_operators_kernels_fill_the_statistics(tmp_path):
    out = tmp_path / "out.json"
    done = run(ROOT, "-k", "softmax and torch_eager", f"--benchmark-json={out}", "tests/pytest_bridge")
    assert done.returncode == 0, done.stdout + done.stderr
    for entry in json.loads(out.read_text())["benchmarks"]:
        assert entry["extra_info"]["timer"] == "cupti"
        assert entry["stats"]["rounds"] >= 9
        assert entry["stats"]["median"] < entry["extra_info"]["call_median"]
