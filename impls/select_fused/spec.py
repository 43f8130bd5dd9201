"""Conditional fusion: y = x · sigmoid(x) where a mask is set, else x / 10, elementwise.

The condition is data, ``mask`` uint8 [N], set at random for half of the elements, so that both branches occur in every
warp. Memory-bound: an element and a byte read, an element written, about 5 operations.

Tolerance: that of silu, exp's relative error of about (1 + |x|) · 2^-23, 2e-6 at |x| = 16; rtol 1e-5 leaves a factor
of 5. A 16-bit output is rounded once; rtol allows twice that, since Triton's interpreter cuts bfloat16 off; float16
below 2^-14 has a spacing of 2^-24. Layouts as in impls/_specs/vectors.py, of x; the mask is contiguous.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data


def inputs(generator, dtype, device, N, layout="contiguous"):
    """x [N] of N(0, 3²) and mask [N] of uint8, half ones."""
    import torch

    from .._specs.vectors import vector

    mask = torch.randint(2, (N,), generator=generator, dtype=torch.uint8, device=device)
    return {"x": data(vector(generator, dtype, device, N, layout, spread=3.0)), "mask": data(mask)}


def reference(x, mask):
    import torch

    return torch.where(mask != 0, torch.nn.functional.silu(x), x / 10)


def flops(N, layout="contiguous"):
    return 5 * N


def traffic(itemsize, N, layout="contiguous"):
    return Traffic(read=N * (itemsize + 1), write=N * itemsize)


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=1e-5, atol=1e-10),
        "float16": Tolerance(rtol=2.0**-10, atol=2.0**-24),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=1e-10),
    },
    check_shapes=(
        {"N": 0},
        {"N": 1},
        {"N": 12345},
        {"N": 8192},
        {"N": 5000, "layout": "strided"},
        {"N": 5000, "layout": "offset"},
    ),
    bench_shapes=(
        {"N": 16384},  # launch-bound
        {"N": 1048576},  # held by the L2
        {"N": 16777216},
        {"N": 134217728},  # DRAM alone
    ),
    tiers={
        "small": (case("float32", N=1048576),),
        "core": (case("float32", N=16384), case("float32", N=16777216), case("float16", N=134217728)),
    },
    ladders={"conditional fusion": ("torch_eager", "cuda_branch", "cuda_select")},
)
