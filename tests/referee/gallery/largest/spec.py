"""The largest element of each row and its place: two outputs, one of them of integers. Rows may be many and empty."""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data


def inputs(generator, dtype, device, M, N):
    import torch

    return {"x": data(torch.randn(M, N, generator=generator, device=device, dtype=torch.float32).to(dtype))}


SPEC = Operator(
    inputs=inputs,
    reference=lambda x: (x.amax(-1), x.argmax(-1)),
    flops=lambda M, N: M * N,
    bytes=lambda itemsize, M, N: Traffic(itemsize * M * N, (itemsize + 8) * M),
    dtypes=("float32",),
    tolerance={"float32": Tolerance(0.0, 0.0)},
    check_shapes=({"M": 0, "N": 5}, {"M": 1, "N": 1}, {"M": 37, "N": 101}),
    bench_shapes=({"M": 37, "N": 101},),
    tiers={"small": (case("float32", M=37, N=101),), "core": (case("float32", M=37, N=101),)},
)
