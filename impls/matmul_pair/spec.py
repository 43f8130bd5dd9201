"""Two independent matrix products of one shape, C1 = A1·B1 and C2 = A2·B2: horizontal fusion. All four factors are
data.

Neither product needs the other, so that two launches do what one can. Compute-bound from about 512³ on: 4·M·N·K FLOPs.
One launch saves the gap before the second kernel and the end of the first, where most multiprocessors idle: a product
of 1024³ in tiles of 128 × 128 has 64 tiles for a GPU of 132 multiprocessors, two of them have 128. At 4096³ there is
nothing to gain.

Each product is drawn and judged as in matmul: A from N(0, 1), B from N(0, 1/K), the tolerances derived there. The
Triton kernels here round bfloat16 to nearest in the interpreter too, so that bfloat16 is held to its own unit roundoff,
2^-8 in norm, where matmul allows twice that.
"""

from __future__ import annotations

from typing import Any

from groundspeed.operator import Input, Operator, Tolerance, Traffic, case, data


def inputs(
    generator: Any, dtype: Any, device: Any, M: int, N: int, K: int, layout: str = "contiguous"
) -> dict[str, Input]:
    from .._specs.factors import activations, weights

    def pair(number: int) -> dict[str, Input]:
        a = activations(generator, dtype, device, M, K, layout)
        return {f"a{number}": data(a), f"b{number}": data(weights(generator, dtype, device, K, N))}

    return pair(1) | pair(2)


def reference(a1: Any, b1: Any, a2: Any, b2: Any) -> tuple[Any, Any]:
    return a1 @ b1, a2 @ b2


def flops(M: int, N: int, K: int, layout: str = "contiguous") -> int:
    """A multiplication and an addition for each of 2·M·N·K products."""
    return 4 * M * N * K


def traffic(itemsize: int, M: int, N: int, K: int, layout: str = "contiguous") -> Traffic:
    return Traffic(read=2 * (M * K + K * N) * itemsize, write=2 * M * N * itemsize)


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
        "bfloat16": Tolerance(rtol=2.0**-7, atol=1.6e-2, norm=2.0**-8),
    },
    check_shapes=(
        {"M": 1, "N": 33, "K": 1},
        {"M": 0, "N": 5, "K": 3},
        {"M": 5, "N": 3, "K": 0},
        {"M": 7, "N": 33, "K": 65},
        {"M": 127, "N": 136, "K": 88},
        {"M": 129, "N": 129, "K": 65},
        {"M": 64, "N": 64, "K": 1024},
        {"M": 33, "N": 40, "K": 72, "layout": "strided"},
        {"M": 65, "N": 72, "K": 128, "layout": "offset"},
    ),
    bench_shapes=(
        {"M": 384, "N": 384, "K": 384},
        {"M": 1024, "N": 1024, "K": 1024},
        {"M": 2048, "N": 2048, "K": 2048},
        {"M": 4096, "N": 4096, "K": 4096},
    ),
    tiers={
        "small": (case("float32", M=384, N=384, K=384),),
        "core": (
            case("float32", M=1024, N=1024, K=1024),
            case("float16", M=1024, N=1024, K=1024),
            case("bfloat16", M=2048, N=2048, K=2048),
            case("bfloat16", M=4096, N=4096, K=4096),
        ),
    },
    ladders={"horizontal fusion": ("torch_eager", "torch_bmm", "triton_grouped", "cuda_grouped")},
)
