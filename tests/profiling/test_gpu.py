"""Profilers for real on a GPU: the page of a kernel of ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.toy_project import ROOT, groundspeed

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

CASE = ("float32", "N=16777216")
# A machine without the profiler, or that does not let it look, has nothing to show; anything else must work.
CANNOT = r"is not on the PATH|ERR_NVGPUCTRPERM|profiling library|nsys left no trace"


def profile(results: Path, tool: str, target: str) -> str:
    """The printed page, white space squeezed."""
    done = groundspeed("profile", target, *CASE, "--with", tool, "--results", str(results), cwd=ROOT)
    cannot = re.search(CANNOT, done.stderr)
    if done.returncode == 2 and cannot:
        pytest.skip(f"{tool} cannot profile here: {done.stderr.strip()[:200]}")
    assert done.returncode == 0, done.stderr
    assert len(list(results.rglob(f"float32-N=16777216-*-{tool}.md"))) == 1
    assert max(map(len, done.stdout[: done.stdout.index("Page  ")].splitlines())) <= 80
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("tool", ["torch", "nsys", "ncu"])
def test_a_cuda_kernels_page(tool, tmp_path):
    text = profile(tmp_path, tool, "relu/cuda_branchfree")
    assert "kernel 1: relu_branchfree<float>" in text and "2 kernels" not in text
    (micro,) = re.findall(r"duration (\S+) µs", text)
    assert 15 < float(micro) < 400, "64 MiB read and 64 MiB written"
    assert "grid 65,536 blocks of 256 threads" in text
    assert re.search(r"registers \d+ a thread", text) and "spills 0 bytes a thread" in text
    assert re.search(r"occupancy .*100 % fit: 8 blocks a multiprocessor, limited by warps", text)


def test_ncu_counts_what_bounds_a_streaming_kernel(tmp_path):
    text = profile(tmp_path, "ncu", "relu/cuda_vec4_b256")
    assert re.search(r"occupancy \d+ % achieved; \d+ % fit", text)
    dram, l2, l1, sm = map(
        int, re.findall(r"throughput DRAM (\d+) %, L2 (\d+) %, L1 (\d+) %, multip\w+ (\d+) %", text)[0]
    )
    assert dram > 50 and 0 < sm <= 100 and 0 < l2 <= 100 and 0 < l1 <= 100
    assert re.search(r"crossed DRAM 6\d(\.\d)? MiB read", text), "64 MiB, some of it still in L2"
    assert re.search(r"warp efficiency 32\.0 of 32 threads", text) and "branch efficiency" in text
    assert "bank conflicts none: shared memory is not used" in text and "a warp waits" in text
    assert re.search(r"local loads and 0 stores|0 local loads", text)


@pytest.mark.parametrize("target", ["relu/triton_block", "relu/torch_eager", "relu/cupy_raw"])
def test_kernels_of_every_back_end_have_a_page(target, tmp_path):
    text = profile(tmp_path, "torch", target)
    assert "kernel 1: " in text and re.search(r"grid [\d,]+ blocks of \d+ threads", text)
    assert re.search(r"registers \d+ a thread", text)
    if target == "relu/triton_block":
        assert "spills 0 bytes a thread" in text


def test_the_default_is_ncu_or_says_why_not(tmp_path):
    done = groundspeed("profile", "relu/cuda_branchfree", *CASE, "--results", str(tmp_path), cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert ("DRAM" in done.stdout and "of peak" in done.stdout) or "Not with ncu: " in done.stdout
