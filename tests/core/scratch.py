"""Scratch trees of tiny operators, and jobs that measure them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

from groundspeed.measure.process import worker_environment
from groundspeed.measure.protocol import Job
from groundspeed.measure.supervisor import Outcome, supervise
from groundspeed.measure.workers import Workers
from groundspeed.records import Measurement
from groundspeed.tree import Tree

SPEC = '''"""Twice x. Memory-bound."""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data


def inputs(generator, dtype, device, N):
    import torch

    return {"x": data(torch.randn(N, generator=generator, device=device, dtype=torch.float32).to(dtype))}


def reference(x):
    return 2 * x


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=lambda N: N,
    bytes=lambda itemsize, N: Traffic(itemsize * N, itemsize * N),
    dtypes=("float32",),
    tolerance={"float32": Tolerance(1e-6, 1e-6)},
    check_shapes=(dict(N=0), dict(N=7)),
    bench_shapes=(dict(N=64), dict(N=4096)),
    tiers={"small": (case("float32", N=64),), "core": (case("float32", N=64), case("float32", N=4096))},
)
'''
EAGER = '"""One multiplication."""\n\n\ndef prepare(x):\n    return lambda: x * 2\n'
ADD = '"""An addition instead."""\n\n\ndef prepare(x):\n    return lambda: x + x\n'


def calls(body: str) -> str:
    """An implementation that is right, and on its n-th call (``n`` counts from 1) first does what ``body`` says.

    Call 1 is prepare's own, 2 the referee's first. ``within("collect")`` tells a timed round, by the timer's function.
    """
    return f'''"""Does something else on some call."""

import ctypes, os, signal, sys, time
import torch


def within(function):
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_name != function:
        frame = frame.f_back
    return frame is not None


def prepare(x):
    n = 0

    def run():
        nonlocal n
        n += 1
        {body}
        return x * 2

    return run
'''


def make_tree(root: Path, operators: Mapping[str, Mapping[str, str]]) -> Path:
    """``operators`` maps an operator to its files' texts by name; ``.py`` is added to a name without a suffix."""
    for operator, files in operators.items():
        folder = root / operator
        folder.mkdir(parents=True)
        for name, text in {"spec": SPEC, "torch_eager": EAGER, **files}.items():
            (folder / (name if "." in name else f"{name}.py")).write_text(text)
    return root


def job(root: Path, operator: str = "double", **changes: object) -> Job:
    """All implementations and bench cases of an operator, on the CPU, timed as briefly as can be."""
    tree = Tree(root)
    fields: dict[str, object] = {
        "operator": operator,
        "tree": str(root),
        "specs": str(root),
        "device": "cpu",
        "implementations": tuple(one.name for one in tree.implementations(operator)),
        "cases": tuple((case.dtype, case.shape) for case in tree.spec(operator).bench_cases),
        "seconds": 0.02,
    }
    return Job(**{**fields, **changes})  # type: ignore[arg-type]


@functools.cache
def workers() -> Workers:
    """One nursery for all tests of a process; it ends with that."""
    return Workers(worker_environment({}), compiler=False)


def sweep(job: Job) -> Outcome:
    return supervise(job, workers().environment, lambda progress: None, workers=workers())


def rows_by_name(outcome: Outcome) -> dict[str, list[Measurement]]:
    """Each implementation's rows in the order of the cases."""
    found: dict[str, list[Measurement]] = {}
    for _, row in sorted(outcome.rows.items(), key=lambda item: item[0]):
        found.setdefault(row.implementation, []).append(row)
    return found
