"""A scratch operator over ranks: the sum of a vector over all of them, in one, two and four processes."""

from __future__ import annotations

SPREAD = ("all_gather", "all_reduce", "reduce_scatter", "sharded_relu", "tensor_parallel_mlp")

SPEC = '''"""The sum over ranks. Bound by the link."""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data


def inputs(generator, dtype, device, W, N):
    import torch

    return [{"x": data(torch.randn(N, generator=generator, device=device, dtype=dtype))} for _ in range(W)]


def reference(rank, tensors):
    return sum(held["x"] for held in tensors)


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=lambda W, N: (W - 1) * N,
    bytes=lambda itemsize, W, N: Traffic(itemsize * N, itemsize * N),
    dtypes=("float32",),
    tolerance={"float32": Tolerance(1e-6, 1e-6)},
    check_shapes=(dict(W=1, N=7), dict(W=2, N=7)),
    bench_shapes=(dict(W=1, N=64), dict(W=2, N=64), dict(W=4, N=64)),
    tiers={"small": (case("float32", W=2, N=64),), "core": (case("float32", W=2, N=64),)},
    bound="peer",
    world="W",
    bus_bytes=lambda itemsize, W, N: 2 * N * itemsize * (W - 1) // W,
)
'''


def calls(body: str, prepared: str = "pass", result: str = "total(x)") -> str:
    """An implementation that is right but for what ``body`` does on the n-th call, and ``prepared`` in prepare.

    ``rank`` is this rank's number where there are several, else -1: faults are those of several ranks.
    """
    return f'''"""Does something else on some rank."""

import os, signal, sys, time
import torch
from torch import distributed


def total(x):
    y = x.clone()
    distributed.all_reduce(y)
    return y


def within(function):
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_name != function:
        frame = frame.f_back
    return frame is not None


def prepare(x):
    rank = distributed.get_rank() if distributed.get_world_size() > 1 else -1
    kept = total(x)
    {prepared}
    n = 0

    def run():
        nonlocal n
        n += 1
        {body}
        return {result}

    return run
'''


EAGER = calls("pass")
