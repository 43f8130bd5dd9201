"""RMS normalisation of the last dimension of [M, N], y = x / sqrt(mean(x²) + 1e-6) · weight.

Memory-bound: about 4 operations for two memory accesses an element; the weight is read once. ``large`` check shapes
(impls/_specs/rows.py) have values of N(0, 400²), whose squares overflow float16.

Tolerance: a sum of squares has no cancellation, so rtol 1e-5 leaves a wide margin over float32 sums; nothing is added
after the products, so atol is what the storage type cannot hold. A 16-bit output is rounded once; rtol allows
twice that, since Triton's interpreter cuts bfloat16 off; float16 below 2^-14 has a spacing of 2^-24.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data, weight

EPSILON = 1e-6


def inputs(generator, dtype, device, M, N, layout="contiguous"):
    """x [M, N] and weight [N] in 0.5 to 1.5, in x's dtype."""
    import torch

    from .._specs.rows import matrix

    scale = 0.5 + torch.rand(N, generator=generator, dtype=torch.float32, device=device)
    return {"x": data(matrix(generator, dtype, device, M, N, layout)), "weight": weight(scale.to(dtype))}


def reference(x, weight):
    import torch

    return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPSILON) * weight


def flops(M, N, layout="contiguous"):
    """Square, sum, and two products for the output: 4 an element."""
    return 4 * M * N


def traffic(itemsize, M, N, layout="contiguous"):
    return Traffic(read=(M * N + N) * itemsize, write=M * N * itemsize)


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
        "float32": Tolerance(rtol=1e-5, atol=1e-10),
        "float16": Tolerance(rtol=2.0**-10, atol=2.0**-24),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=1e-10),
    },
    check_shapes=(
        {"M": 0, "N": 8},
        {"M": 1, "N": 1},
        {"M": 7, "N": 1000},
        {"M": 3, "N": 4097},
        {"M": 5, "N": 768, "layout": "strided"},
        {"M": 6, "N": 2048, "layout": "large"},
        {"M": 2, "N": 32776},
    ),
    bench_shapes=(
        {"M": 4096, "N": 1024},
        {"M": 16384, "N": 2048},
        {"M": 16384, "N": 4096},
        {"M": 8192, "N": 8192},
        {"M": 2048, "N": 32768},
    ),
    tiers={
        "small": (case("float32", M=4096, N=1024),),
        "core": (
            case("float16", M=4096, N=1024),
            case("float32", M=16384, N=4096),
            case("bfloat16", M=16384, N=4096),
            case("float32", M=2048, N=32768),
        ),
    },
)
