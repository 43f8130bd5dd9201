"""The sources' faulty kernels as Triton kernels, in its interpreter: caught through the same door as on a GPU."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from groundspeed.operator import Case, case
from groundspeed.tree import Tree
from tests.paths import python_path
from tests.referee.court import FAULTY, GALLERY, IMPLS, verdict

FAULTS = (
    # implementation, a case that its fault spoils, one that hides it
    (FAULTY, "relu", "triton_no_tail", case("float32", N=12345), case("float32", N=32768)),
    (
        GALLERY,
        "matmul_gelu",
        "triton_unmasked_store",
        case("float32", M=17, N=19, K=23),
        case("float32", M=32, N=48, K=16),
    ),
)


@pytest.mark.gpu
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[2])
def test_faulty_kernels_on_a_gpu(fault: tuple[Tree, str, str, Case, Case]):
    tree, operator, name, spoiled, spared = fault
    assert verdict(tree, operator, name, spoiled, device="cuda").split(":")[0] in ("finite", "tolerance")
    assert verdict(tree, operator, name, spared, device="cuda") == ""


def test_faulty_kernels_in_the_interpreter():
    """One process for all: the variable must be set before anything of Triton is imported."""
    pytest.importorskip("triton")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": python_path()}
    done = subprocess.run(
        [sys.executable, "-m", "tests.referee.test_triton"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    told = [line.partition(" ")[::2] for line in done.stdout.splitlines()]
    assert [name for name, _ in told] == ["triton_block", *(one for *_, one, _, _ in FAULTS for _ in range(2))]
    assert told[0][1] == ""
    for (_, spoiled), (_, spared) in zip(told[1::2], told[2::2], strict=True):
        assert spoiled.split(":")[0] in ("finite", "tolerance") and spared == ""


if __name__ == "__main__":
    print("triton_block", verdict(IMPLS, "relu", "triton_block", case("float32", N=1024)))
    for tree, operator, name, spoiled, spared in FAULTS:
        for one in (spoiled, spared):
            print(name, verdict(tree, operator, name, one))
