"""The gated block of a transformer, y = (silu(x·Wg) · (x·Wu))·Wd: x [T, D] data, Wg and Wu [D, H], Wd [H, D] weights.

The gate goes through silu(z) = z / (1 + e^-z) and multiplies the other projection of x, not itself and not x.
Compute-bound: 6·T·D·H FLOPs, and 5 operations for each of T·H elements between the products. Not fused, these elements
are written twice by the products, read and written by silu, read twice and written by the product of both, and read by
the last product: 8·T·H elements of traffic; with the gate in the epilogue of a product that holds both sums, 2·T·H.

x is drawn from N(0, 1), Wg and Wu from N(0, 1/D), Wd from N(0, 1/H): gate and up are N(0, 1), h = silu(gate)·up has a
mean square of 0.36, and y is N(0, 0.36).

Tolerances. Errors of h are independent of Wd, so y carries them with the norm they have: an error of relative norm e in
h is one of e in y. In float32 a sum of K products is off by sqrt(K/6) · 2^-24 of N(0, 1) (matmul's spec), 1.6e-6 at D =
4096; silu passes 0.8 times that on in norm, up the other factor; the second product adds sqrt(H/6)·2^-24, 2.5e-6 at H =
10944: together 3.5e-6 of y, norm = 1e-5. In absolute terms that is 2.1e-6, and six standard deviations are 1.3e-5, atol
= 2e-5. TF32 loses 2.9e-4 in each product. In 16 bits a rounding costs 0.41·u in norm (u = 2^-11, 2^-8): gate (1.1
times, through silu), up, silu, h and y are rounded, a split-K product's partial sums in each of three products: less
than 0.41·u·sqrt(8.5) = 1.2·u, norm = 1.5·u, which refuses 16-bit accumulation of 1000 and more products. An element's
error is 1.1·u times 0.6 and normal, whatever the element's own size: six standard deviations are 4·u, and as much for
partial sums of y that are rounded before they cancel; atol = 6·u, rtol = 2·u.
"""

from __future__ import annotations

from typing import Any

from groundspeed.operator import Input, Operator, Tolerance, Traffic, case, data, weight


def inputs(
    generator: Any, dtype: Any, device: Any, T: int, D: int, H: int, layout: str = "contiguous"
) -> dict[str, Input]:
    from .._specs.factors import activations, weights

    return {
        "x": data(activations(generator, dtype, device, T, D, layout)),
        "gate": weight(weights(generator, dtype, device, D, H)),
        "up": weight(weights(generator, dtype, device, D, H)),
        "down": weight(weights(generator, dtype, device, H, D)),
    }


def reference(x: Any, gate: Any, up: Any, down: Any) -> Any:
    import torch

    return (torch.nn.functional.silu(x @ gate) * (x @ up)) @ down


def flops(T: int, D: int, H: int, layout: str = "contiguous") -> int:
    """A multiplication and an addition for each of 3·T·D·H products, then 5 for each of T·H elements."""
    return 6 * T * D * H + 5 * T * H


def traffic(itemsize: int, T: int, D: int, H: int, layout: str = "contiguous") -> Traffic:
    return Traffic(read=(T * D + 3 * D * H) * itemsize, write=T * D * itemsize)


def tokens(T: int, D: int, H: int, layout: str = "contiguous") -> int:
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
        "float16": Tolerance(rtol=2.0**-10, atol=6 * 2.0**-11, norm=1.5 * 2.0**-11),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=6 * 2.0**-8, norm=1.5 * 2.0**-8),
    },
    check_shapes=(
        {"T": 1, "D": 33, "H": 65},
        {"T": 0, "D": 5, "H": 3},
        {"T": 3, "D": 0, "H": 5},
        {"T": 7, "D": 33, "H": 0},
        {"T": 33, "D": 65, "H": 127},
        {"T": 129, "D": 72, "H": 136},
        {"T": 64, "D": 1024, "H": 128},
        {"T": 65, "D": 40, "H": 72, "layout": "strided"},
        {"T": 65, "D": 64, "H": 72, "layout": "offset"},
    ),
    bench_shapes=(
        {"T": 256, "D": 256, "H": 704},
        {"T": 2048, "D": 1024, "H": 2752},
        {"T": 2048, "D": 2048, "H": 5504},
        {"T": 4096, "D": 4096, "H": 10944},
    ),
    tiers={
        "small": (case("float32", T=256, D=256, H=704),),
        "core": (
            case("float32", T=2048, D=1024, H=2752),
            case("float16", T=2048, D=1024, H=2752),
            case("bfloat16", T=2048, D=2048, H=5504),
            case("bfloat16", T=4096, D=4096, H=10944),
        ),
    },
    ladders={
        "gate in the epilogue": ("torch_eager", "torch_packed", "triton_fused", "triton_interleaved", "cuda_fused")
    },
)
