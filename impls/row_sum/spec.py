"""The sum of each row of [M, N]. Memory-bound: one addition for each element read, almost nothing written.

Elements are positive, so that sums do not cancel, and each row has a scale of its own between 0.5 and 1.5, so that no
constant is near every row's sum; values shrink with N where a sum could overflow float16. Few very long rows
(M = 16) are the case in which one block a row leaves most of a GPU idle.

Tolerance: float32 partial sums of positive values carry a relative error that grows with the square root of the number
of additions in a row, 2^-24 · √2048 · 0.5 = 1.3e-6 where a thread adds 2048 of them; rtol 1e-5 leaves a factor of 7. A
16-bit output is rounded once; rtol allows twice that, since Triton's interpreter cuts bfloat16 off.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data


def inputs(generator, dtype, device, M, N, layout="contiguous"):
    """x [M, N], positive, each row with a scale of its own."""
    import torch

    x = torch.rand((M, N), generator=generator, dtype=torch.float32, device=device)
    x *= 0.5 + torch.rand((M, 1), generator=generator, dtype=torch.float32, device=device)
    x = (x * min(1.0, 32768 / max(N, 1))).to(dtype)
    if layout == "strided":
        x = x.new_empty((M, 2 * N))[:, ::2].copy_(x)
    return {"x": data(x)}


def reference(x):
    return x.sum(dim=-1)


def flops(M, N, layout="contiguous"):
    return M * N


def traffic(itemsize, M, N, layout="contiguous"):
    return Traffic(read=M * N * itemsize, write=M * itemsize)


def rows(M, N, layout="contiguous"):
    return M


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    samples=rows,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=1e-5, atol=0.0),
        "float16": Tolerance(rtol=2.0**-10, atol=2.0**-24),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=0.0),
    },
    check_shapes=(
        {"M": 0, "N": 8},
        {"M": 3, "N": 0},
        {"M": 1, "N": 1},
        {"M": 7, "N": 1000},
        {"M": 33, "N": 257},
        {"M": 5, "N": 768, "layout": "strided"},
        {"M": 2, "N": 50000},
    ),
    bench_shapes=(
        {"M": 4096, "N": 1024},
        {"M": 65536, "N": 1024},
        {"M": 16384, "N": 4096},
        {"M": 2048, "N": 32768},
        {"M": 16, "N": 4194304},
    ),
    tiers={
        "small": (case("float32", M=4096, N=1024),),
        "core": (
            case("float32", M=65536, N=1024),
            case("float32", M=16384, N=4096),
            case("bfloat16", M=16384, N=4096),
            case("float32", M=16, N=4194304),
        ),
    },
    ladders={"few long rows": ("cuda_block", "cuda_split")},
)
