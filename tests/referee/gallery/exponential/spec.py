"""e to the x for x far from zero: the relative error of a careless exp grows with the size of its argument.

The tolerance is eight roundings of float32. CUDA's expf errs by two units in the last place at most (CUDA Math API),
which is four; a rounded product x·log2(e) alone errs by up to |x| half roundings.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data


def inputs(generator, dtype, device, N):
    import torch

    return {"x": data(160 * torch.rand(N, generator=generator, device=device, dtype=dtype) - 80)}


def reference(x):
    import torch

    return torch.exp(x)


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=lambda N: N,
    bytes=lambda itemsize, N: Traffic(itemsize * N, itemsize * N),
    dtypes=("float32",),
    tolerance={"float32": Tolerance(rtol=8 * 2.0**-24, atol=0.0)},
    check_shapes=({"N": 0}, {"N": 1000}),
    bench_shapes=({"N": 1000},),
    tiers={"small": (case("float32", N=1000),), "core": (case("float32", N=1000),)},
)
