"""ReLU, y = max(x, 0), elementwise. Memory-bound: one operation for two memory accesses.

The reference is ``torch.relu`` on float64, so a NaN stays a NaN. No step of a ReLU rounds, hence the tolerance: the
output must be exact in every dtype.

Layouts of the check shapes: ``strided`` has a gap of one element between neighbours; ``offset`` is contiguous but
starts one element into its buffer, so that no address is a multiple of 16 bytes. ``values="special"`` sprinkles NaN,
infinities and zeros of both signs.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data, strided

EXACT = Tolerance(rtol=0.0, atol=0.0)


def inputs(generator, dtype, device, N, layout="contiguous", values="normal"):
    import torch

    x = torch.randn(N, generator=generator, dtype=dtype, device=device)
    if values == "special":
        for start, value in enumerate((float("nan"), float("inf"), -float("inf"), 0.0, -0.0)):
            x[start::7] = value
    if layout == "strided":
        x = strided(x)
    elif layout == "offset":
        x = x.new_empty(N + 1)[1:].copy_(x)
    return {"x": data(x)}


def reference(x):
    import torch

    return torch.relu(x)


def flops(N, layout="contiguous", values="normal"):
    return N


def traffic(itemsize, N, layout="contiguous", values="normal"):
    return Traffic(read=N * itemsize, write=N * itemsize)


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={"float32": EXACT, "float16": EXACT, "bfloat16": EXACT},
    check_shapes=(
        {"N": 0},
        {"N": 1},
        {"N": 1024},
        {"N": 12345},
        {"N": 32768},
        {"N": 65537},
        {"N": 12345, "layout": "strided"},
        {"N": 12345, "layout": "offset"},
        {"N": 12345, "values": "special"},
    ),
    bench_shapes=(
        {"N": 16384},  # 64 KiB of float32: launch-bound
        {"N": 1048576},  # 4 MiB: held by the L2 of any recent data-centre GPU
        {"N": 16777216},  # 64 MiB: about an H200's L2
        {"N": 134217728},  # 512 MiB: DRAM alone
    ),
    tiers={
        "small": (case("float32", N=16384), case("float32", N=1048576)),
        "core": (
            case("float32", N=16384),
            case("float32", N=16777216),
            case("float16", N=16777216),
            case("float32", N=134217728),
        ),
    },
    ladders={
        "memory access": (
            "torch_eager",
            "cuda_uncoalesced",
            "cuda_branchfree",
            "cuda_vec4_b128",
            "cuda_vec4_b256",
            "cuda_vec4_b512",
            "cuda_shared",
        ),
        "divergence": ("cuda_branch", "cuda_branchfree"),
    },
)
