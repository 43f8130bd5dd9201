"""The first and the last row of x, zeros between them."""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data


def inputs(generator, dtype, device, M, N):
    import torch

    return {"x": data(torch.randn(M, N, generator=generator, device=device, dtype=dtype))}


def reference(x):
    import torch

    y = torch.zeros_like(x)
    y[0], y[-1] = x[0], x[-1]
    return y


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=lambda M, N: 0,
    bytes=lambda itemsize, M, N: Traffic(2 * itemsize * N, itemsize * M * N),
    dtypes=("float32",),
    tolerance={"float32": Tolerance(0.0, 0.0)},
    check_shapes=({"M": 33, "N": 65},),
    bench_shapes=({"M": 33, "N": 65},),
    tiers={"small": (case("float32", M=33, N=65),), "core": (case("float32", M=33, N=65),)},
)
