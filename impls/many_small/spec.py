"""A chain of tiny elementwise steps, y ← |y - b_i| for each fold i, on a few thousand elements. Bound by launches.

Read the call time here, not the device time alone: the arithmetic of a step takes a fraction of a microsecond, and what
the implementations differ in is what the host pays to issue the steps and what the device waits between them. Device
time shows the second, call time both. Eager takes two kernels a fold: 32 in the bench cases.

A fold's point b_i is a weight of 32 bits that an implementation may read before it is timed. A chain of affine steps,
or of affine steps and ReLUs, could be made one step then. This one folds the number line again and again into a zigzag
of slope ±1, which has no short form.

Tolerance: an absolute value is exact and a subtraction rounds by at most half a unit in the last place, u·|y|, which
later folds neither stretch nor shrink. The points lie in [1/4, 3/4], so |y| falls to less than 3/4: from |x| ≤ 5 the
errors add up to less than 32·u over 16 folds. Their signs are random, so in the norm they come to some √16·u/2 of
outputs that are about 1/3 in size: 6·u, of which 16·u is allowed. An output near 0 has no relative error to speak of.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data, weight

FOLDS = 16


def inputs(generator, dtype, device, N, folds, layout="contiguous"):
    import torch

    from .._specs.vectors import vector

    x = vector(generator, dtype, device, N, layout)
    b = 0.25 + 0.5 * torch.rand(folds, generator=generator, dtype=torch.float32, device=device)
    return {"x": data(x), "b": weight(b)}


def reference(x, b):
    for point in b:
        x = (x - point).abs()
    return x


def flops(N, folds, layout="contiguous"):
    return 2 * N * folds


def traffic(itemsize, N, folds, layout="contiguous"):
    return Traffic(read=N * itemsize + 4 * folds, write=N * itemsize)


def tolerance(half_ulp):
    return Tolerance(rtol=0.0, atol=32 * half_ulp, norm=16 * half_ulp)


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": tolerance(2.0**-24),
        "float16": tolerance(2.0**-11),
        "bfloat16": tolerance(2.0**-8),
    },
    check_shapes=(
        {"N": 0, "folds": 3},
        {"N": 1, "folds": FOLDS},
        {"N": 1000, "folds": FOLDS},
        {"N": 12345, "folds": 1},
        {"N": 5000, "folds": 3, "layout": "strided"},
        {"N": 5000, "folds": 3, "layout": "offset"},
    ),
    bench_shapes=(
        {"N": 4096, "folds": FOLDS},
        {"N": 16384, "folds": FOLDS},
        {"N": 65536, "folds": FOLDS},
        {"N": 1048576, "folds": FOLDS},  # where moving the data begins to count
    ),
    tiers={
        "small": (case("float32", N=4096, folds=FOLDS),),
        "core": (
            case("float32", N=4096, folds=FOLDS),
            case("float32", N=65536, folds=FOLDS),
            case("float16", N=65536, folds=FOLDS),
        ),
    },
    ladders={"launches": ("torch_eager", "cuda_chain", "torch_graph", "cuda_persistent")},
)
