"""Twice x. Layout ``strided`` leaves a gap between neighbours, ``offset`` starts one element into its buffer."""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data, strided


def inputs(generator, dtype, device, N, layout="contiguous"):
    import torch

    x = torch.randn(N, generator=generator, device=device, dtype=torch.float32).to(dtype)
    if layout == "strided":
        x = strided(x)
    elif layout == "offset":
        x = x.new_empty(N + 1)[1:].copy_(x)
    return {"x": data(x)}


def traffic(itemsize, N, layout="contiguous"):
    return Traffic(itemsize * N, itemsize * N)


SPEC = Operator(
    inputs=inputs,
    reference=lambda x: 2 * x,
    flops=lambda N, layout="contiguous": N,
    bytes=traffic,
    dtypes=("float32", "float16"),
    tolerance={"float32": Tolerance(1e-6, 1e-6), "float16": Tolerance(1e-3, 1e-3)},
    check_shapes=({"N": 0}, {"N": 1}, {"N": 1000}, {"N": 1000, "layout": "strided"}, {"N": 1000, "layout": "offset"}),
    bench_shapes=({"N": 1000}, {"N": 65536}),
    tiers={"small": (case("float32", N=1000),), "core": (case("float32", N=1000),)},
)
