"""Faults that are no slower median, planted and found by the real engine on the CPU."""

from __future__ import annotations

import pytest

SPEC = '''"""Exponentials: one rounding an element, so that a tenfold error is far below the tolerance."""
from groundspeed.operator import Operator, Tolerance, Traffic, case, data


def inputs(generator, dtype, device, N):
    import torch

    return {"x": data(torch.randn(N, generator=generator, device=device).to(dtype))}


def reference(x):
    return x.exp()


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=lambda N: N,
    bytes=lambda itemsize, N: Traffic(N * itemsize, N * itemsize),
    dtypes=("float32",),
    tolerance={"float32": Tolerance(1e-4, 1e-6)},
    check_shapes=({"N": 5},),
    bench_shapes=({"N": 20000},),
    tiers={"small": (case("float32", N=20000),), "core": (case("float32", N=20000),)},
)
'''
IMPLEMENTATION = '''"""One ATen kernel, and one that multiplies by what should be one."""
import random
import time

import torch

SCALE = 1.0


def prepare(x):
    def run():
        return torch.exp(x) * SCALE

    return run
'''
FAULTS = {
    "torch_hungry": ("        return", "        more = torch.empty(x.numel() // 5)\n        return"),
    "torch_rough": ("SCALE = 1.0", "SCALE = 1.000003"),
    "torch_moody": (
        "        return",
        "        if random.random() < 0.1:\n            time.sleep(0.03)\n        return",
    ),
    "torch_absent": ("import torch", "import torch\nimport no_such_module"),
}
POLICY = """
[tool.groundspeed.gate]
metrics = ["device_hot", "device_cold_p99", "peak_memory", "error"]
fresh_processes = 6
tail_rounds = 80
[tool.groundspeed.gate.thresholds]
device_hot = 1.0  # a CPU shared with other tests: nothing planted here moves the median
device_cold_p99 = 1.0
"""


@pytest.fixture
def real(tmp_path, repo):
    """The scratch repository with an operator that really computes, an implementation for each fault."""
    repo.git("checkout", "-q", "main")
    for path in sorted((repo.root / "impls").rglob("*.py")):
        path.unlink()
    repo.write("impls/exponential/spec.py", SPEC)
    for name in ("torch_eager", *FAULTS):
        repo.write(f"impls/exponential/{name}.py", IMPLEMENTATION)
    repo.write("pyproject.toml", POLICY)
    repo.commit("Start")
    repo.git("checkout", "-q", "-B", "topic")
    return repo


def plant(repo, *names):
    for name in names:
        repo.edit(f"impls/exponential/{name}.py", *FAULTS[name])
    return repo.commit("Plant faults")


@pytest.mark.quiet
@pytest.mark.slow
def test_memory_accuracy_slow_path_and_a_failing_import_are_each_caught(real, real_engine):
    plant(real, *FAULTS)
    result = real.gate("--base", "main", engine=real_engine)
    assert result.status == 1, result.output
    failing = {(f["implementation"], f["metric"]) for v in ("regressed", "broken") for f in result.findings(verdict=v)}
    assert failing == {
        ("torch_hungry", "peak_memory"),
        ("torch_rough", "error"),
        ("torch_moody", "device_cold_p99"),
        ("torch_absent", "status"),
    }, result.output
    (memory,) = result.findings(implementation="torch_hungry", metric="peak_memory")
    assert memory["ratio"] == pytest.approx(1.1, abs=0.01)
    (error,) = result.findings(implementation="torch_rough", metric="error")
    assert error["ratio"] > 10
    (absent,) = result.findings(implementation="torch_absent")
    assert "no_such_module" in absent["reason"]
    (hot,) = result.findings(implementation="torch_moody", metric="device_hot")
    assert hot["ratio"] < 2  # the median does not show it


@pytest.mark.quiet
@pytest.mark.slow
def test_a_base_that_does_not_import_is_no_pass(real, real_engine):
    broken = plant(real, "torch_absent")
    real.git("checkout", "-q", "-B", "mended")
    real.write("impls/exponential/torch_absent.py", IMPLEMENTATION)
    real.commit("Mend it")
    result = real.gate("--base", broken, "--head", "mended", engine=real_engine)
    assert result.status == 2 and result.verdicts() == {"fixed"}, result.output
    assert "base could not run" in result.report["unmeasured"][0]["reason"]
