"""compute-sanitizer for real: planted faults are found with kernel, line and case, and honest kernels are clean."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli import toy_project
from tests.cli.toy_project import ROOT, groundspeed

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

FAULTY = Path(__file__).parent / "faulty"
# A machine whose tool is missing or cannot attach to the GPU has nothing to show; anything else must work.
CANNOT = r"compute-sanitizer is not on the PATH|Device not supported|terminated before first instrumented"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = toy_project.make(tmp_path_factory.mktemp("toy") / "p", double={})
    shutil.copytree(ROOT / "impls" / "_cuda", root / "impls" / "_cuda")
    for source in FAULTY.glob("*.cu"):
        shutil.copy(source, root / "impls" / "double" / source.name)
    return root


def sanitize(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = groundspeed("sanitize", *arguments, cwd=cwd)
    cannot = re.search(CANNOT, done.stdout + done.stderr)
    if done.returncode == 2 and cannot:
        pytest.skip(f"compute-sanitizer does not work here: {cannot.group()}")
    return done


def line_of(name: str, text: str) -> int:
    lines = (FAULTY / f"{name}.cu").read_text().splitlines()
    (found,) = [number for number, line in enumerate(lines, start=1) if text in line]
    return found


def test_memcheck_finds_a_write_behind_the_output_and_says_where(project):
    done = sanitize(project, "double/cuda_clean", "double/cuda_past_end")
    assert done.returncode == 1, done.stdout + done.stderr
    out = " ".join(done.stdout.split())
    assert re.search(r"double/cuda_clean clean 6 cases", out)
    assert re.search(r"double/cuda_past_end \d+ errors? Invalid __global__ write of size 4 bytes", out)
    assert f"past_end<float>, cuda_past_end.cu:{line_of('cuda_past_end', 'if (i <= size)')}" in out
    assert "of float32 N=1; float32 N=12345" in out and "N=0" not in out
    assert "2 implementations, 1 clean, 1 with errors" in out


def test_racecheck_finds_a_missing_barrier(project):
    done = sanitize(project, "double/cuda_clean", "double/cuda_race", "--tool", "racecheck")
    assert done.returncode == 1, done.stdout + done.stderr
    out = " ".join(done.stdout.split())
    assert re.search(r"double/cuda_clean clean", out)
    assert re.search(r"double/cuda_race \d+ (error|warning)", out)
    assert "Race between" in out and "race<float>" in out and "N=12345" in out
    assert f"cuda_race.cu:{line_of('cuda_race', 'tile[kBlock - 1')}" in out


def test_initcheck_finds_a_read_of_what_nobody_wrote(project):
    done = sanitize(project, "double/cuda_clean", "double/cuda_uninitialised", "--tool", "initcheck")
    assert done.returncode == 1, done.stdout + done.stderr
    out = " ".join(done.stdout.split())
    assert re.search(r"double/cuda_clean clean", out)
    assert "Uninitialized __global__ memory read" in out and "uninitialised<float>" in out


@pytest.mark.parametrize("tool", ["memcheck", "synccheck"])
def test_kernels_of_every_back_end_run_under_it(tool):
    names = ["relu/cuda_shared", "relu/triton_block", "relu/cupy_raw"]
    done = sanitize(ROOT, *names, "--tool", tool)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{tool}: 3 implementations, 3 clean" in done.stdout
