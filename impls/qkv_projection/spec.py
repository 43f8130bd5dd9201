"""Queries, keys and values of one input: q = x·Wq, k = x·Wk, v = x·Wv, x [T, D] data, each W [D, N] a weight.

Compute-bound for many tokens: 6·T·D·N FLOPs. As three products x is read three times and there are three launches; as
one product with weights side by side x is read once. The traffic of x is small beside the products' time, so that
fusion pays by launches and by filling the GPU: three products of 4096 × 1024 × 1024 have 128 tiles of 128 × 256 each,
384 together, for 132 multiprocessors. Outputs are three tensors with dense memory of their own.

x is drawn from N(0, 1), the weights from N(0, 1/D): every output is judged as matmul's, bfloat16 by its own unit
roundoff as in matmul_pair.
"""

from __future__ import annotations

from typing import Any

from groundspeed.operator import Input, Operator, Tolerance, Traffic, case, data, weight


def inputs(
    generator: Any, dtype: Any, device: Any, T: int, D: int, N: int, layout: str = "contiguous"
) -> dict[str, Input]:
    from .._specs.factors import activations, weights

    x = activations(generator, dtype, device, T, D, layout)
    drawn = {name: weight(weights(generator, dtype, device, D, N)) for name in ("wq", "wk", "wv")}
    return {"x": data(x), **drawn}


def reference(x: Any, wq: Any, wk: Any, wv: Any) -> tuple[Any, Any, Any]:
    return x @ wq, x @ wk, x @ wv


def flops(T: int, D: int, N: int, layout: str = "contiguous") -> int:
    """A multiplication and an addition for each of 3·T·D·N products."""
    return 6 * T * D * N


def traffic(itemsize: int, T: int, D: int, N: int, layout: str = "contiguous") -> Traffic:
    return Traffic(read=(T * D + 3 * D * N) * itemsize, write=3 * T * N * itemsize)


def tokens(T: int, D: int, N: int, layout: str = "contiguous") -> int:
    return T


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    samples=tokens,
    bound="compute",
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=2.0**-23, atol=2e-5, norm=1e-5),
        "float16": Tolerance(rtol=2.0**-10, atol=2e-3, norm=2.0**-11),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=1.6e-2, norm=2.0**-8),
    },
    check_shapes=(
        {"T": 1, "D": 1, "N": 33},
        {"T": 0, "D": 3, "N": 5},
        {"T": 5, "D": 0, "N": 3},
        {"T": 7, "D": 65, "N": 33},
        {"T": 127, "D": 88, "N": 136},
        {"T": 129, "D": 65, "N": 65},
        {"T": 64, "D": 1024, "N": 64},
        {"T": 33, "D": 72, "N": 40, "layout": "strided"},
        {"T": 65, "D": 128, "N": 72, "layout": "offset"},
    ),
    bench_shapes=(
        {"T": 384, "D": 384, "N": 384},
        {"T": 64, "D": 4096, "N": 4096},  # few tokens: bound by reading the weights
        {"T": 4096, "D": 1024, "N": 1024},
        {"T": 4096, "D": 4096, "N": 4096},
    ),
    tiers={
        "small": (case("float32", T=384, D=384, N=384),),
        "core": (
            case("float32", T=4096, D=1024, N=1024),
            case("float16", T=4096, D=1024, N=1024),
            case("bfloat16", T=4096, D=1024, N=1024),
            case("bfloat16", T=4096, D=4096, N=4096),
        ),
    },
    ladders={"horizontal fusion": ("torch_eager", "torch_packed", "triton_packed", "cuda_grouped")},
)
