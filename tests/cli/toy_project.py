"""A project with one or two tiny operators, to run the commands on for real in seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.paths import python_path

ROOT = Path(__file__).resolve().parents[2]

SPEC = '''"""Twice x. Memory-bound."""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data


def inputs(generator, dtype, device, N):
    import torch

    return {"x": data(torch.randn(N, generator=generator, device=device, dtype=torch.float32).to(dtype))}


SPEC = Operator(
    inputs=inputs,
    reference=lambda x: 2 * x,
    flops=lambda N: N,
    bytes=lambda itemsize, N: Traffic(itemsize * N, itemsize * N),
    dtypes=("float32", "float16"),
    tolerance={"float32": Tolerance(1e-6, 1e-6), "float16": Tolerance(1e-3, 1e-3)},
    check_shapes=(dict(N=0), dict(N=1), dict(N=12345)),
    bench_shapes=(dict(N=4096), dict(N=1 << 20)),
    tiers={"small": (case("float32", N=4096),), "core": (case("float32", N=4096), case("float16", N=1 << 20))},
)
'''
EAGER = '''"""One multiplication by the framework."""


def prepare(x):
    return lambda: x * 2
'''
ADD = '''"""An addition in place of the multiplication."""


def prepare(x):
    return lambda: x + x
'''
WRONG = '''"""Three times x, which is wrong."""


def prepare(x):
    return lambda: x * 3
'''
RAISES = '''"""Raises when it runs."""


def prepare(x):
    def run():
        raise ValueError("no such luck")

    return run
'''
TRITON = '''"""Never timed on a CPU."""

import triton
import triton.language as tl


@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


def prepare(x):
    import torch

    def run():
        out = torch.empty_like(x)
        if x.numel():
            double[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out

    return run
'''


def make(root: Path, **operators: dict[str, str]) -> Path:
    """A project of these operators; each maps a file's stem to its text, ``spec`` and ``torch_eager`` given."""
    (root / "impls").mkdir(parents=True)
    (root / "asv.conf.json").write_text("{}")
    for operator, files in operators.items():
        folder = root / "impls" / operator
        folder.mkdir()
        for stem, text in {"spec": SPEC, "torch_eager": EAGER, **files}.items():
            (folder / f"{stem}.py").write_text(text)
    return root


def groundspeed(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a user would, in a folder."""
    env = {**os.environ, "PYTHONPATH": python_path(), "COLUMNS": "80", **environment}
    return subprocess.run(
        [sys.executable, "-m", "groundspeed", *arguments], cwd=cwd, env=env, capture_output=True, text=True, timeout=300
    )
