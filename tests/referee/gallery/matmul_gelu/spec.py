"""GELU of a matrix product."""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data, weight


def inputs(generator, dtype, device, M, N, K):
    import torch

    draw = lambda *size: torch.randn(*size, generator=generator, device=device, dtype=dtype)  # noqa: E731
    return {"a": data(draw(M, K)), "b": weight(draw(K, N) / K**0.5)}


def reference(a, b):
    import torch

    return torch.nn.functional.gelu(a @ b)


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=lambda M, N, K: 2 * M * N * K,
    bytes=lambda itemsize, M, N, K: Traffic(itemsize * (M * K + K * N), itemsize * M * N),
    dtypes=("float32",),
    tolerance={"float32": Tolerance(1e-5, 1e-5)},
    check_shapes=({"M": 17, "N": 19, "K": 23}, {"M": 32, "N": 48, "K": 16}),
    bench_shapes=({"M": 32, "N": 48, "K": 16},),
    tiers={"small": (case("float32", M=32, N=48, K=16),), "core": (case("float32", M=32, N=48, K=16),)},
)
