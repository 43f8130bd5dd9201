"""max(s · x, 0) of a vector and one scale s: two elementwise operators that vertical fusion makes one.

Memory-bound: 2 operations for one element read and one written. The scale is a weight of 32 bits, a number that an
implementation may read before it is timed. Tolerance: one rounding, of the product; rtol is one unit in the last
place, since Triton's interpreter cuts bfloat16 off; a product may be denormal in float16, where the spacing is 2^-24.
A NaN stays a NaN.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data, weight


def inputs(generator, dtype, device, N, layout="contiguous", values="normal"):
    import torch

    from .._specs.vectors import vector

    scale = 0.5 + torch.rand((), generator=generator, dtype=torch.float32, device=device)
    return {"x": data(vector(generator, dtype, device, N, layout, values)), "scale": weight(scale)}


def reference(x, scale):
    import torch

    return torch.relu(x * scale)


def flops(N, layout="contiguous", values="normal"):
    return 2 * N


def traffic(itemsize, N, layout="contiguous", values="normal"):
    return Traffic(read=N * itemsize, write=N * itemsize)


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=2.0**-23, atol=0.0),
        "float16": Tolerance(rtol=2.0**-10, atol=2.0**-24),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=0.0),
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
    ladders={"vertical fusion": ("torch_eager", "cuda_two_kernels", "cuda_fused")},
)
