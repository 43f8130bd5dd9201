"""A linear layer with its activation, y = gelu(A·B + bias): A [M, K] data, B [K, N] and bias [N] weights.

GELU is the one by the error function, z/2 · (1 + erf(z/√2)), not its approximation by tanh. Compute-bound as matmul is:
2·M·N·K FLOPs, and two operations and an error function more an element. Not fused, the activation reads and writes M·N
elements again, 2·M·N·itemsize bytes: a tenth of the time at K = 4096, a quarter at K = 1024.

A and bias are drawn from N(0, 1) and B from N(0, 1/K), so that z is N(0, 2).

Tolerances. The sums carry the errors that matmul's spec derives, and |gelu'| <= 1.13 passes them on: in float32 at most
1.13 · 2e-5, and 2e-6 for erf as in gelu's spec, atol = 2.5e-5; norm = 1e-5 as there, since y is not larger than z. In
16 bits z may be rounded before the activation, as operators that are not fused round it, and y is. A rounding of z by
the unit roundoff u (2^-11 in float16, 2^-8 in bfloat16) moves y by |z · gelu'(z)| · u, at most 1.3·|y|·u for positive z
and 0.18·u for negative z: with y's own rounding rtol = 2.5·u. atol covers a rounded partial sum of a split-K product
beside a small z, 1.13 times matmul's. In norm a rounding costs 0.41·u, that of z 1.2 times as much and a split-K
product's as well: 0.8·u, norm = u, which refuses 16-bit accumulation from K = 2048 on as matmul's does.
"""

from __future__ import annotations

from typing import Any

from groundspeed.operator import Input, Operator, Tolerance, Traffic, case, data, weight


def inputs(
    generator: Any, dtype: Any, device: Any, M: int, N: int, K: int, layout: str = "contiguous"
) -> dict[str, Input]:
    import torch

    from .._specs.factors import activations, weights

    a = activations(generator, dtype, device, M, K, layout)
    b = weights(generator, dtype, device, K, N)
    bias = torch.randn(N, generator=generator, device=device, dtype=torch.float32).to(dtype)
    return {"a": data(a), "b": weight(b), "bias": weight(bias)}


def reference(a: Any, b: Any, bias: Any) -> Any:
    import torch

    return torch.nn.functional.gelu(a @ b + bias)


def flops(M: int, N: int, K: int, layout: str = "contiguous") -> int:
    """A multiplication and an addition for each of M·N·K products, then 6 an element, the error function as one."""
    return 2 * M * N * K + 6 * M * N


def traffic(itemsize: int, M: int, N: int, K: int, layout: str = "contiguous") -> Traffic:
    return Traffic(read=(M * K + K * N + N) * itemsize, write=M * N * itemsize)


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    bound="compute",
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=2.0**-23, atol=2.5e-5, norm=1e-5),
        "float16": Tolerance(rtol=2.5 * 2.0**-11, atol=2.3e-3, norm=2.0**-11),
        "bfloat16": Tolerance(rtol=2.5 * 2.0**-8, atol=1.8e-2, norm=2.0**-8),
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
        {"M": 512, "N": 512, "K": 512},
        {"M": 2048, "N": 2048, "K": 1024},
        {"M": 8192, "N": 4096, "K": 1024},
        {"M": 8192, "N": 1024, "K": 4096},
        {"M": 4096, "N": 4096, "K": 4096},
    ),
    tiers={
        "small": (case("float32", M=512, N=512, K=512),),
        "core": (
            case("float32", M=2048, N=2048, K=1024),
            case("float16", M=8192, N=4096, K=1024),
            case("bfloat16", M=8192, N=1024, K=4096),
            case("bfloat16", M=4096, N=4096, K=4096),
        ),
    },
    ladders={"fused epilogue": ("torch_eager", "torch_compile", "triton_fused", "cuda_overlapped")},
)
