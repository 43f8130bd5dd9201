"""SiLU (Swish), y = x · sigmoid(x) = x / (1 + exp(-x)), elementwise. Memory-bound.

Tolerance: exp carries a relative error of about (1 + |x|) · 2^-23 from rounding its argument, 2e-6 at |x| = 16, the
most that N(0, 3²) gives; rtol 1e-5 leaves a factor of 5. A 16-bit output is rounded once; rtol allows twice that, since
Triton's interpreter cuts bfloat16 off; float16 below 2^-14 has a spacing of 2^-24. FLOPs count the exponential as one.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data


def inputs(generator, dtype, device, N, layout="contiguous", values="normal"):
    from .._specs.vectors import vector

    return {"x": data(vector(generator, dtype, device, N, layout, values, spread=3.0))}


def reference(x):
    import torch

    return torch.nn.functional.silu(x)


def flops(N, layout="contiguous", values="normal"):
    return 4 * N


def traffic(itemsize, N, layout="contiguous", values="normal"):
    return Traffic(read=N * itemsize, write=N * itemsize)


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
        {"N": 5000, "values": "special"},
    ),
    bench_shapes=(
        {"N": 16384},  # launch-bound
        {"N": 1048576},  # held by the L2
        {"N": 16777216},  # 64 MiB of float32 each way
        {"N": 134217728},  # DRAM alone
    ),
    tiers={
        "small": (case("float32", N=1048576),),
        "core": (case("float32", N=16384), case("float32", N=16777216), case("float16", N=134217728)),
    },
    ladders={"vertical fusion": ("torch_product", "torch_compile")},
)
