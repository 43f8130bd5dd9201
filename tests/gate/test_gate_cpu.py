"""The gate with its real engine on the CPU: a slow commit of a torch implementation, found through git."""

from __future__ import annotations

import pytest

SPEC = '''"""Row sums: too few elements for ATen to wake a second thread, which takes a loaded machine milliseconds."""
from groundspeed.operator import Operator, Tolerance, Traffic, case, data


def inputs(generator, dtype, device, M, N):
    import torch

    return {"x": data(torch.randn(M, N, generator=generator, device=device).to(dtype))}


def reference(x):
    return x.sum(1)


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=lambda M, N: M * N,
    bytes=lambda itemsize, M, N: Traffic(M * N * itemsize, M * itemsize),
    dtypes=("float32",),
    tolerance={"float32": Tolerance(1e-4, 1e-3)},
    check_shapes=({"M": 3, "N": 5},),
    bench_shapes=({"M": 16, "N": 512},),
    tiers={"small": (case("float32", M=16, N=512),), "core": (case("float32", M=16, N=512),)},
)
'''
EAGER = '''"""One ATen reduction."""


def prepare(x):
    def run():
        return x.sum(1)

    return run
'''
POLICY = """
[tool.groundspeed.gate]
metrics = ["device_hot", "error"]
rounds = 12
[tool.groundspeed.gate.thresholds]
device_hot = 0.25  # a CPU shared with other tests: the plant is far larger
"""


@pytest.fixture
def real(tmp_path, repo):
    """The scratch repository with an operator that really computes."""
    repo.git("checkout", "-q", "main")
    for path in (
        "impls/_shared.py",
        "impls/double/spec.py",
        "impls/double/torch_eager.py",
        "impls/double/triton_row.py",
    ):
        (repo.root / path).unlink()
    repo.write("impls/rowsum/spec.py", SPEC)
    repo.write("impls/rowsum/torch_eager.py", EAGER)
    repo.write("pyproject.toml", POLICY)
    repo.commit("Real")
    repo.git("checkout", "-q", "-B", "topic")
    return repo


@pytest.mark.quiet
@pytest.mark.slow
def test_a_planted_slow_commit_is_caught_and_its_undoing_improves(real, real_engine):
    real.edit("impls/rowsum/torch_eager.py", "return x.sum(1)", "x.exp().log().exp().log()\n        return x.sum(1)")
    slow = real.commit("Do needless work")
    result = real.gate("--base", "main", "--head", "topic", engine=real_engine)
    assert result.status == 1, result.output
    (finding,) = result.findings(metric="device_hot")
    assert finding["verdict"] == "regressed" and finding["ratio"] > 2 and finding["processes"] == 10
    assert result.verdicts(metric="error") == {"unchanged"}

    real.git("checkout", "-q", "-B", "mended")
    real.write("impls/rowsum/torch_eager.py", EAGER)
    real.commit("Undo it")
    result = real.gate("--base", slow, "--head", "mended", engine=real_engine)
    assert result.status == 0 and result.verdicts(metric="device_hot") == {"improved"}


@pytest.mark.quiet
@pytest.mark.slow
def test_a_wrong_head_is_broken_and_an_equal_one_unchanged(real, real_engine):
    real.edit("impls/rowsum/torch_eager.py", "return x.sum(1)", "return x.sum(1) * 1.01")
    real.commit("Be wrong")
    result = real.gate("--base", "main", engine=real_engine)
    assert result.status == 1 and result.verdicts() == {"broken"}, result.output

    real.write("impls/rowsum/torch_eager.py", EAGER.replace("x.sum(1)", "x.sum(dim=1)"))
    real.commit("Spell it out")
    result = real.gate("--base", "main", engine=real_engine)
    assert result.status == 0 and result.verdicts(metric="device_hot") <= {"unchanged", "ambiguous"}, result.output
