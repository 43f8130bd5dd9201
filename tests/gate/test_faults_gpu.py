"""Planted faults that are no slow median, found by the gate on a GPU in copies of real files of all back ends."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu

IMPLS = Path(__file__).parents[2] / "impls"
POLICY = """
[tool.groundspeed.gate]
metrics = ["device_cold", "device_cold_p99", "peak_memory", "error"]
"""
CASE = ("--dtype", "float32", "--shape", "M=4096,N=1024")

UNDIVIDED = 1 << 20  # bytes: torch's allocator divides no block of which less than that would be left

# A file of impls/softmax, a text that is in it once, and what takes its place.
MEMORY = (
    "torch_eager.py",
    "        return torch.softmax(x, dim=-1)\n",
    "        more = torch.empty_like(x.view(-1)[: x.numel() // 9])\n        return torch.softmax(x, dim=-1)\n",
)
ACCURACY = (
    "triton_row.py",
    "    result = exponentials / tl.sum(exponentials, axis=0)\n",
    "    result = exponentials / tl.sum(exponentials, axis=0) * 1.000002\n",
)
SLOW_PATH = (
    "cuda_block.cu",
    "  kernel<<<static_cast<unsigned>(rows), static_cast<unsigned>(warps",
    "  static unsigned state = 1;\n"
    "  state = state * 1664525u + 1013904223u;  // a linear congruential generator: 16 of 256 calls are slow\n"
    "  const unsigned times = (state >> 24) < 16 ? 4 : 1;\n"
    "  for (unsigned time = 0; time < times; ++time)\n"
    "  kernel<<<static_cast<unsigned>(rows), static_cast<unsigned>(warps",
)
BUILD = ("cuda_warp.cu", "namespace {\n", "#error planted\nnamespace {\n")
RUN_TIME_BUILD = ("cupy_raw.py", "  float maximum = NEGATIVE_INFINITY;\n", "  float maximum = planted;\n")
FAULTS = (MEMORY, ACCURACY, SLOW_PATH, BUILD, RUN_TIME_BUILD)


@pytest.fixture
def real(repo):
    """The scratch repository with the project's own softmax."""
    repo.git("checkout", "-q", "main")
    shutil.rmtree(repo.root / "impls")
    shared = [folder.name for folder in IMPLS.iterdir() if folder.name.startswith("_")]
    for name in ("softmax", *shared):
        shutil.copytree(IMPLS / name, repo.root / "impls" / name, ignore=shutil.ignore_patterns("__pycache__"))
    repo.write("pyproject.toml", POLICY)
    repo.commit("Start")
    repo.git("checkout", "-q", "-B", "topic")
    return repo


def plant(repo, *faults):
    for file, old, new in faults:
        path = f"impls/softmax/{file}"
        assert (repo.root / path).read_text().count(old) == 1, f"{path} has changed: mend the fault planted in it"
        repo.edit(path, old, new)
    return repo.commit("Plant faults")


def test_memory_accuracy_slow_path_and_builds_are_each_caught(real, real_engine):
    plant(real, *FAULTS)
    result = real.gate("--base", "main", *CASE, engine=real_engine, device="cuda")
    assert result.status == 1, result.output
    failing = {(f["implementation"], f["metric"]) for v in ("regressed", "broken") for f in result.findings(verdict=v)}
    assert failing == {
        ("torch_eager", "peak_memory"),
        ("triton_row", "error"),
        ("cuda_block", "device_cold_p99"),
        ("cuda_warp", "status"),
        ("cupy_raw", "status"),
    }, result.output
    (memory,) = result.findings(implementation="torch_eager", metric="peak_memory")
    assert 0 <= memory["ratio"] - (1 + 1 / 9) <= UNDIVIDED / (4 * 4096 * 1024), result.output
    (error,) = result.findings(implementation="triton_row", metric="error")
    assert error["ratio"] > 10
    (median,) = result.findings(implementation="cuda_block", metric="device_cold")
    assert median["verdict"] == "unchanged" and median["ratio"] == pytest.approx(1, abs=0.01)
    (build,) = result.findings(implementation="cuda_warp")
    assert "failed (build)" in build["reason"] and "planted" in build["reason"]


def test_a_base_that_does_not_build_is_no_pass(real, real_engine):
    broken = plant(real, BUILD)
    real.git("checkout", "-q", "-B", "mended")
    file, old, new = BUILD
    real.edit(f"impls/softmax/{file}", new, old)
    real.commit("Mend it")
    result = real.gate("--base", broken, "--head", "mended", *CASE, engine=real_engine, device="cuda")
    assert result.status == 2 and result.verdicts() == {"fixed"}, result.output
    assert "base could not run" in result.report["unmeasured"][0]["reason"]
