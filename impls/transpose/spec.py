"""The transpose of a matrix, [M, N] to a contiguous [N, M]. Memory-bound: nothing is computed.

Reading along rows means writing along columns: the problem is to be coalesced on both sides. No element changes, hence
the tolerance: the output must be exact. ``flops`` is 0.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data, strided

EXACT = Tolerance(rtol=0.0, atol=0.0)


def inputs(generator, dtype, device, M, N, layout="contiguous"):
    import torch

    x = torch.randn((M, N), generator=generator, dtype=dtype, device=device)
    return {"x": data(strided(x) if layout == "strided" else x)}


def reference(x):
    return x.T.contiguous()


def flops(M, N, layout="contiguous"):
    return 0


def traffic(itemsize, M, N, layout="contiguous"):
    return Traffic(read=M * N * itemsize, write=M * N * itemsize)


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={"float32": EXACT, "float16": EXACT, "bfloat16": EXACT},
    check_shapes=(
        {"M": 0, "N": 8},
        {"M": 1, "N": 1},
        {"M": 37, "N": 101},
        {"M": 104, "N": 72},
        {"M": 128, "N": 192},
        {"M": 65, "N": 64, "layout": "strided"},
    ),
    bench_shapes=(
        {"M": 1024, "N": 1024},
        {"M": 4096, "N": 4096},
        {"M": 8192, "N": 8192},
        {"M": 65536, "N": 1024},
        {"M": 8191, "N": 8191},  # no whole vectors
    ),
    tiers={
        "small": (case("float32", M=1024, N=1024),),
        "core": (
            case("float32", M=1024, N=1024),
            case("float32", M=8192, N=8192),
            case("float16", M=8192, N=8192),
            case("float32", M=65536, N=1024),
        ),
    },
    ladders={"memory access": ("torch_eager", "cuda_naive", "cuda_tiled", "cuda_tiled_padded", "cuda_vec")},
)
