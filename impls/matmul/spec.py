"""Matrix product C = A·B, A [M, K] and B [K, N] row-major, both data.

Compute-bound from about 512³ on: 2·M·N·K FLOPs over itemsize·(M·K + K·N + M·N) bytes is K/3 FLOP/B for a bfloat16 cube
(1365 at 4096³; the ridge of an H200 lies near 180).

A is drawn from N(0, 1) and B from N(0, 1/K), so that an element of C is N(0, 1) whatever K is: nothing overflows
float16, and one absolute tolerance fits every shape. Layout ``strided`` leaves a gap between A's neighbours.

Tolerances, for float32 accumulation and one rounding of the output. Let u = 2^-24. Adding K products one after another
rounds partial sums whose variance grows as k/K; the k-th rounding has a variance of about u²/3·k/K, so the sum's error
has a standard deviation of about u·sqrt(K/6): 2.2e-6 at K = 8192, and 6 of those, the largest of 67 million elements,
are 1.4e-5. Hence for float32 atol = 2e-5, and norm = 1e-5, a factor of 4 over the worst order of summation. TF32 rounds
both factors to 11 bits, a relative error in norm of 2.9e-4: caught by a factor of 29.

Float16 adds one rounding of C, at most 2^-11 of it and about 2.1e-4 in norm. norm = 2^-11 admits that and the one more
rounding of partial sums that cuBLAS's split-K may take, and refuses float16 accumulation (over 1e-3 from K = 2048 on,
even with exact sums of 16 products between roundings). Element by element rtol is one unit in the last place and atol
2e-3 covers a rounded partial sum beside a small result. Bfloat16 rounds at 2^-8: rtol and norm are one unit in the last
place, 2^-7, since Triton's interpreter cuts bfloat16 off instead of rounding it; atol scales with it.
"""

from __future__ import annotations

import math
from typing import Any

from groundspeed.operator import Input, Operator, Tolerance, Traffic, case, data, strided


def inputs(
    generator: Any, dtype: Any, device: Any, M: int, N: int, K: int, layout: str = "contiguous"
) -> dict[str, Input]:
    """A [M, K] from N(0, 1) and B [K, N] from N(0, 1/K)."""
    import torch

    if layout not in ("contiguous", "strided"):
        raise ValueError(f"matmul: unknown layout {layout!r}, expected contiguous or strided")
    a = torch.randn((M, K), generator=generator, device=device, dtype=torch.float32).to(dtype)
    b = torch.randn((K, N), generator=generator, device=device, dtype=torch.float32)
    b = (b / math.sqrt(max(K, 1))).to(dtype)
    return {"a": data(strided(a) if layout == "strided" else a), "b": data(b)}


def reference(a: Any, b: Any) -> Any:
    """The float64 product."""
    return a @ b


def flops(M: int, N: int, K: int, layout: str = "contiguous") -> int:
    """A multiplication and an addition for each of M·N·K products."""
    return 2 * M * N * K


def traffic(itemsize: int, M: int, N: int, K: int, layout: str = "contiguous") -> Traffic:
    """A and B read once, C written once."""
    return Traffic(read=(M * K + K * N) * itemsize, write=M * N * itemsize)


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    bound="compute",
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=2.0**-23, atol=2e-5, norm=1e-5),
        "float16": Tolerance(rtol=2.0**-10, atol=2e-3, norm=2.0**-11),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=1.6e-2, norm=2.0**-7),
    },
    check_shapes=(
        {"M": 1, "N": 1, "K": 1},
        {"M": 0, "N": 5, "K": 3},
        {"M": 5, "N": 3, "K": 0},
        {"M": 17, "N": 19, "K": 23},
        {"M": 128, "N": 128, "K": 128},
        {"M": 257, "N": 129, "K": 513},
        {"M": 64, "N": 64, "K": 2048},
        {"M": 200, "N": 136, "K": 88},
        {"M": 33, "N": 40, "K": 72, "layout": "strided"},
        {"M": 17000, "N": 40, "K": 72},
    ),
    bench_shapes=(
        {"M": 512, "N": 512, "K": 512},
        {"M": 1024, "N": 1024, "K": 1024},
        {"M": 2048, "N": 2048, "K": 2048},
        {"M": 4096, "N": 4096, "K": 4096},
        {"M": 8192, "N": 8192, "K": 8192},
    ),
    tiers={
        "small": (case("float32", M=512, N=512, K=512),),
        "core": (
            case("float32", M=1024, N=1024, K=1024),
            case("float16", M=4096, N=4096, K=4096),
            case("bfloat16", M=4096, N=4096, K=4096),
            case("bfloat16", M=8192, N=8192, K=8192),
        ),
    },
    ladders={
        "cuda cores": ("torch_eager", "cuda_tiled", "cuda_tiled_padded", "cuda_register"),
        "tensor cores": ("torch_eager", "cuda_tiled_padded", "cuda_register", "cuda_mma", "cuda_wgmma"),
    },
)
