"""Rotary position embedding of queries q [B, S, H, D] and keys k [B, S, H/G, D], by tables cos and sin [S, D/2].

Rotate-half convention: element i of a head's first half and element i of its second are a pair, turned by the angle of
their position, (x1, x2) → (x1·cos - x2·sin, x2·cos + x1·sin). Memory-bound: 3 operations for an element that is read
and written once; the tables, a head's worth for each position, are read once and then found in L2. cos and sin are
weights in the inputs' dtype, of the angles s·10000^(-2i/D): tables stay for many calls.

Layout ``transposed`` is a [B, H, S, D] tensor seen as [B, S, H, D]; ``strided`` has a gap of one element between
neighbours.

Tolerance, with the unit roundoff u (2^-8 bfloat16, 2^-11 float16, 2^-24 float32): eager rounds both products and their
sum, each by 0.4·u in the root mean square, 0.6·u together: norm = 2·u. An element's products are off by
u·(|x1·cos| + |x2·sin|) ≤ u·1.42·|(x1, x2)|, and of 10^8 pairs of N(0, 1) the longest is 6.1: atol = 8·u. rtol is one
unit in the last place, since Triton's interpreter cuts bfloat16 off.
"""

from __future__ import annotations

from typing import Any

from groundspeed.operator import Input, Operator, Tolerance, Traffic, case, data, strided, weight

LAYOUTS = ("contiguous", "transposed", "strided")
BASE = 10000.0


def inputs(
    generator: Any, dtype: Any, device: Any, B: int, S: int, H: int, G: int, D: int, layout: str = "contiguous"
) -> dict[str, Input]:
    """q and k from N(0, 1) in the named layout; cos and sin of every position and pair."""
    import torch

    if layout not in LAYOUTS or H % G or D % 2:
        raise ValueError(f"rope: no layout {layout!r} of H={H}, G={G}, D={D}: H is a multiple of G, D is even")
    made: dict[str, Input] = {}
    for name, heads in (("q", H), ("k", H // G)):
        shape = (B, heads, S, D) if layout == "transposed" else (B, S, heads, D)
        x = torch.randn(shape, generator=generator, device=device, dtype=torch.float32).to(dtype)
        x = x.transpose(1, 2) if layout == "transposed" else x
        made[name] = data(strided(x) if layout == "strided" else x)
    pairs = torch.arange(D // 2, dtype=torch.float64, device=device)
    angles = torch.arange(S, dtype=torch.float64, device=device)[:, None] * BASE ** (-2.0 * pairs / D)
    return {**made, "cos": weight(angles.cos().to(dtype)), "sin": weight(angles.sin().to(dtype))}


def reference(q: Any, k: Any, cos: Any, sin: Any) -> Any:
    import torch

    def turned(x: Any) -> Any:
        first, second = x.chunk(2, dim=-1)
        c, s = cos[:, None, :], sin[:, None, :]
        return torch.cat((first * c - second * s, second * c + first * s), dim=-1)

    return turned(q), turned(k)


def elements(B: int, S: int, H: int, G: int, D: int) -> int:
    return B * S * (H + H // G) * D


def flops(B: int, S: int, H: int, G: int, D: int, layout: str = "contiguous") -> int:
    """Two products and a sum for an element."""
    return 3 * elements(B, S, H, G, D)


def traffic(itemsize: int, B: int, S: int, H: int, G: int, D: int, layout: str = "contiguous") -> Traffic:
    """q, k and both tables read once, q and k written once."""
    size = elements(B, S, H, G, D)
    return Traffic(read=(size + S * D) * itemsize, write=size * itemsize)


def sequences(B: int, S: int, H: int, G: int, D: int, layout: str = "contiguous") -> int:
    return B


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    samples=sequences,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=2.0**-23, atol=2.0**-21, norm=2.0**-23),
        "float16": Tolerance(rtol=2.0**-10, atol=2.0**-8, norm=2.0**-10),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=2.0**-5, norm=2.0**-7),
    },
    check_shapes=(
        {"B": 0, "S": 4, "H": 2, "G": 1, "D": 64},
        {"B": 1, "S": 1, "H": 1, "G": 1, "D": 2},
        {"B": 2, "S": 7, "H": 6, "G": 3, "D": 64},
        {"B": 1, "S": 33, "H": 8, "G": 2, "D": 128},
        {"B": 2, "S": 5, "H": 3, "G": 1, "D": 66},
        {"B": 2, "S": 9, "H": 4, "G": 4, "D": 128, "layout": "transposed"},
        {"B": 1, "S": 6, "H": 4, "G": 2, "D": 64, "layout": "strided"},
    ),
    bench_shapes=(
        {"B": 1, "S": 512, "H": 8, "G": 1, "D": 64},
        {"B": 4, "S": 4096, "H": 16, "G": 1, "D": 64},
        {"B": 4, "S": 4096, "H": 32, "G": 4, "D": 128},
        {"B": 1, "S": 16384, "H": 32, "G": 1, "D": 128},
    ),
    tiers={
        "small": (case("float32", B=1, S=512, H=8, G=1, D=64),),
        "core": (
            case("bfloat16", B=4, S=4096, H=16, G=1, D=64),
            case("float16", B=4, S=4096, H=32, G=4, D=128),
            case("bfloat16", B=4, S=4096, H=32, G=4, D=128),
            case("float32", B=1, S=16384, H=32, G=1, D=128),
        ),
    },
)
