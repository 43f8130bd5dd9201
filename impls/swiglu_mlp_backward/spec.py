"""The backward pass of swiglu_mlp, y = h·Wd with h = silu(z)·u, z = x·Wg and u = x·Wu: gradients of x and the weights.

From grad_output [T, D], x [T, D], the saved projections z and u [T, H], and the weights Wg and Wu [D, H] and Wd [H, D]:

    grad_h = grad_output·Wdᵀ,  grad_z = grad_h·u·silu'(z),  grad_u = grad_h·silu(z),
    grad_x = grad_z·Wgᵀ + grad_u·Wuᵀ,  grad_Wg = xᵀ·grad_z,  grad_Wu = xᵀ·grad_u,  grad_Wd = hᵀ·grad_output,

with silu'(z) = s·(1 + z·(1 - s)) for s = 1 / (1 + e^-z): the chain rule applied to the SwiGLU layer of Shazeer, "GLU
Variants Improve Transformer" (2020). The operator is this for whatever z and u it is given. Compute-bound: six
products, 12·T·D·H FLOPs, and about 14 operations for each of T·H elements between them. Not fused, those elements are
moved some 15 times; fused, grad_h is written and read, z and u are read, grad_z, grad_u and h are written.

Scales make all four gradients N(0, 1) about, so that one tolerance and one norm judge them all: grad_output is N(0,
1/(0.36·T)), x is N(0, a), Wg and Wu N(0, 1/(a·D)), Wd N(0, 1/(a·D)), with a = sqrt(2·H/(T·D)); z and u are N(0, 1).

Tolerances, as swiglu_mlp's. In float32 a sum of K products is off by sqrt(K/6) · 2^-24 of its size, 2.5e-6 at H =
10944; a gradient carries the errors of grad_h and of one product more: together 3.5e-6, norm = 1e-5; six standard
deviations are 2e-5, atol = 3.5e-5. TF32 loses 2.9e-4 in each product. In 16 bits a rounding costs 0.41·u in norm (u =
2^-11, 2^-8): grad_h, grad_h·u, grad_z, both parts of grad_x, their sum, and partial sums of split products in each of
two: 0.41·u · sqrt(7) = 1.1·u, norm = 1.5·u, which refuses 16-bit accumulation of 1000 and more products. An element's
error is normal, whatever its own size: six standard deviations are 6.6·u, and half as much for partial sums that are
rounded before they cancel; atol = 9·u, rtol = 2·u.
"""

from __future__ import annotations

import math
from typing import Any

from groundspeed.operator import Input, Operator, Tolerance, Traffic, case, data, weight


def inputs(
    generator: Any, dtype: Any, device: Any, T: int, D: int, H: int, layout: str = "contiguous"
) -> dict[str, Input]:
    """grad_output and x [T, D], z and u [T, H] as data; gate and up [D, H] and down [H, D] as weights."""
    import torch

    from .._specs.factors import activations

    a = math.sqrt(2 * max(H, 1) / (max(T, 1) * max(D, 1)))

    def drawn(rows: int, columns: int) -> Any:
        values = torch.randn((rows, columns), generator=generator, device=device, dtype=torch.float32)
        return (values / math.sqrt(a * max(D, 1))).to(dtype)

    gate, up, down = drawn(D, H), drawn(D, H), drawn(H, D)
    x = activations(generator, dtype, device, T, D, layout).mul_(math.sqrt(a))
    grad_output = activations(generator, dtype, device, T, D, layout).mul_(1 / math.sqrt(0.36 * max(T, 1)))
    return {
        "grad_output": data(grad_output),
        "x": data(x),
        "z": data(x @ gate),
        "u": data(x @ up),
        "gate": weight(gate),
        "up": weight(up),
        "down": weight(down),
    }


def reference(grad_output: Any, x: Any, z: Any, u: Any, gate: Any, up: Any, down: Any) -> Any:
    import torch

    s = torch.sigmoid(z)
    grad_h = grad_output @ down.T
    grad_z = grad_h * u * (s * (1.0 + z * (1.0 - s)))
    grad_u = grad_h * (z * s)
    return grad_z @ gate.T + grad_u @ up.T, x.T @ grad_z, x.T @ grad_u, (z * s * u).T @ grad_output


def flops(T: int, D: int, H: int, layout: str = "contiguous") -> int:
    """A multiplication and an addition for each of 6·T·D·H products, then 14 for each of T·H elements."""
    return 12 * T * D * H + 14 * T * H


def traffic(itemsize: int, T: int, D: int, H: int, layout: str = "contiguous") -> Traffic:
    return Traffic(read=(2 * T * D + 2 * T * H + 3 * D * H) * itemsize, write=(T * D + 3 * D * H) * itemsize)


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
        "float32": Tolerance(rtol=2.0**-23, atol=3.5e-5, norm=1e-5),
        "float16": Tolerance(rtol=2.0**-10, atol=9 * 2.0**-11, norm=1.5 * 2.0**-11),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=9 * 2.0**-8, norm=1.5 * 2.0**-8),
    },
    check_shapes=(
        {"T": 1, "D": 33, "H": 65},
        {"T": 0, "D": 5, "H": 3},
        {"T": 7, "D": 33, "H": 0},
        {"T": 33, "D": 65, "H": 127},
        {"T": 136, "D": 72, "H": 264},
        {"T": 65, "D": 40, "H": 72, "layout": "strided"},
        {"T": 64, "D": 64, "H": 72, "layout": "offset"},
    ),
    bench_shapes=(
        {"T": 256, "D": 256, "H": 704},
        {"T": 2048, "D": 1024, "H": 2752},
        {"T": 2048, "D": 2048, "H": 5504},
        {"T": 4096, "D": 4096, "H": 10944},
    ),
    tiers={
        "small": (case("float32", T=256, D=256, H=704),),
        "core": (case("float16", T=2048, D=1024, H=2752), case("bfloat16", T=2048, D=2048, H=5504)),
    },
)
