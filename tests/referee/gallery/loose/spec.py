"""Twice x, under an absolute tolerance as wide as the answers."""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data


def inputs(generator, dtype, device, N):
    import torch

    return {"x": data(torch.randn(N, generator=generator, device=device, dtype=dtype))}


SPEC = Operator(
    inputs=inputs,
    reference=lambda x: 2 * x,
    flops=lambda N: N,
    bytes=lambda itemsize, N: Traffic(itemsize * N, itemsize * N),
    dtypes=("float32",),
    tolerance={"float32": Tolerance(rtol=1e-3, atol=20.0)},
    check_shapes=({"N": 1000},),
    bench_shapes=({"N": 1000},),
    tiers={"small": (case("float32", N=1000),), "core": (case("float32", N=1000),)},
)
