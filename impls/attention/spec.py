"""Attention, softmax(q · kᵀ / √D) · v for q, k and v of [B, H, S, D]; causal: query i sees the keys 0 to i.

Compute-bound: 4·D FLOPs for each pair of a query and a key that it sees (the two products; the softmax is not counted,
as in FlashAttention's own figures) over 4·B·H·S·D elements, S/2 FLOP/B and more. ``causal`` is a weight, int32 [1]: it
stays for many calls, so an implementation may read it before it is timed.

q, k and v are N(0, 1), so scores are N(0, 1) and a query spreads over about S/e keys: the output has a standard
deviation of about sqrt(e/S), but the first queries of a causal case are single values of v. Layout ``transposed`` is a
[B, S, H, D] tensor seen as [B, H, S, D], as a projection leaves it; ``strided`` has a gap of one element between
neighbours.

Tolerance. With a unit roundoff u, a 16-bit product of scores kept in memory is rounded twice (product, scale), each by
u·|score| at most and by 0.4·u·|score| in the root mean square; under the weights p² that enter the error's variance
scores are N(2, 1), so a weight is off by sqrt(2·5)·0.4·u, and two more roundings (weights, output) make 1.4·u in norm.
A fused kernel keeps float32 scores: 0.6·u. norm = 2·u admits both (u = 2^-8 bfloat16, 2^-11 float16) and refuses a
missing key (1/sqrt(S)), a mask that is off by one, another scale. Element by element the first causal rows are the
worst: two scores near 4, rounded apart by 4·u each, move a weight of 1/2 by u·4 and values that lie 4 apart by 8·u =
atol; rtol is one unit in the last place, since Triton's interpreter cuts bfloat16 off. Float32: an exponent's argument
near 8 is rounded at 2^-21 and the sum over S adds its own; atol = rtol = 1e-5, norm = 5e-6, which TF32 products (3e-4)
exceed by far.
"""

from __future__ import annotations

import math
from typing import Any

from groundspeed.operator import Input, Operator, Tolerance, Traffic, case, data, strided, weight

LAYOUTS = ("contiguous", "transposed", "strided")


def inputs(
    generator: Any, dtype: Any, device: Any, B: int, H: int, S: int, D: int, causal: int, layout: str = "contiguous"
) -> dict[str, Input]:
    """q, k and v [B, H, S, D] from N(0, 1) in the named layout, and causal as int32 [1]."""
    import torch

    if layout not in LAYOUTS:
        raise ValueError(f"attention: unknown layout {layout!r}, expected one of {', '.join(LAYOUTS)}")
    shape = (B, S, H, D) if layout == "transposed" else (B, H, S, D)
    made: dict[str, Input] = {}
    for name in ("q", "k", "v"):
        x = torch.randn(shape, generator=generator, device=device, dtype=torch.float32).to(dtype)
        x = x.transpose(1, 2) if layout == "transposed" else x
        made[name] = data(strided(x) if layout == "strided" else x)
    made["causal"] = weight(torch.tensor([causal], dtype=torch.int32, device=device))
    return made


def reference(q: Any, k: Any, v: Any, causal: Any) -> Any:
    """The float64 formula, head by head: the scores of all heads at once would not fit."""
    import torch

    length, size = q.shape[-2:]
    hidden = None
    if int(causal):
        hidden = torch.ones((length, length), dtype=torch.bool, device=q.device).triu_(1)
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    for batch in range(q.shape[0]):
        for head in range(q.shape[1]):
            scores = q[batch, head] @ k[batch, head].T
            scores *= 1.0 / math.sqrt(size)
            if hidden is not None:
                scores.masked_fill_(hidden, float("-inf"))
            out[batch, head] = torch.softmax(scores, dim=-1) @ v[batch, head]
    return out


def flops(B: int, H: int, S: int, D: int, causal: int, layout: str = "contiguous") -> int:
    """A multiplication and an addition for each of D elements, for each pair, in both products."""
    pairs = S * (S + 1) // 2 if causal else S * S
    return 4 * D * B * H * pairs


def traffic(itemsize: int, B: int, H: int, S: int, D: int, causal: int, layout: str = "contiguous") -> Traffic:
    """q, k and v read once, the output written once."""
    size = B * H * S * D * itemsize
    return Traffic(read=3 * size, write=size)


def sequences(B: int, H: int, S: int, D: int, causal: int, layout: str = "contiguous") -> int:
    return B


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    samples=sequences,
    bound="compute",
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=1e-5, atol=1e-5, norm=5e-6),
        "float16": Tolerance(rtol=2.0**-10, atol=2.0**-8, norm=2.0**-10),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=2.0**-5, norm=2.0**-7),
    },
    check_shapes=(
        {"B": 0, "H": 2, "S": 8, "D": 64, "causal": 1},
        {"B": 2, "H": 2, "S": 1, "D": 64, "causal": 1},
        {"B": 1, "H": 3, "S": 17, "D": 128, "causal": 1},
        {"B": 1, "H": 2, "S": 257, "D": 64, "causal": 1},
        {"B": 1, "H": 2, "S": 200, "D": 128, "causal": 0},
        {"B": 2, "H": 2, "S": 192, "D": 128, "causal": 1, "layout": "transposed"},
        {"B": 1, "H": 2, "S": 129, "D": 64, "causal": 0, "layout": "strided"},
        {"B": 1, "H": 2, "S": 70, "D": 33, "causal": 1},
    ),
    bench_shapes=(
        {"B": 1, "H": 4, "S": 256, "D": 64, "causal": 1},
        {"B": 2, "H": 16, "S": 4096, "D": 64, "causal": 1},
        {"B": 1, "H": 16, "S": 8192, "D": 128, "causal": 1},
        {"B": 1, "H": 16, "S": 8192, "D": 128, "causal": 0},
        {"B": 1, "H": 16, "S": 16384, "D": 128, "causal": 1},
    ),
    tiers={
        "small": (case("float32", B=1, H=4, S=256, D=64, causal=1),),
        "core": (
            case("float16", B=2, H=16, S=4096, D=64, causal=1),
            case("bfloat16", B=2, H=16, S=4096, D=64, causal=1),
            case("bfloat16", B=1, H=16, S=8192, D=128, causal=1),
            case("bfloat16", B=1, H=16, S=8192, D=128, causal=0),
        ),
    },
)
