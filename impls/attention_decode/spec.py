"""One step of decoding: a query a sequence, q [B, H, D], against caches of keys and values [B, H/G, S, D].

Sequence b has ``lengths[b]`` positions (int32 [B], 1 to S), and G query heads share one head of the caches:
out[b, h] = softmax(q[b, h] · k[b, h//G]ᵀ / √D) · v[b, h//G] over the first lengths[b] positions. Memory-bound: 4·G
FLOPs for an element of the caches, which is read once.

Lengths are no random numbers, so that the bytes are exact: ``fill`` is ``full`` (all S), ``one`` (all 1) or ``ragged``,
max(1, S·(1 + 7·b mod B) // B), from S/B to S in a mixed order. Only the valid positions count. What lies behind them is
N(0, 30²): whoever lets it in is far off. Layout ``transposed`` are caches [B, S, H/G, D] seen as [B, H/G, S, D].

q and the valid positions are N(0, 1). Tolerance as attention's, whose rows these are: with the unit roundoff u (2^-8
bfloat16, 2^-11 float16) scores that are kept in 16 bits are rounded twice and the weights and the output once: 1.4·u in
norm, 2·u allowed, and 8·u for an element; float32 adds up to S terms, atol = rtol = 1e-5 and norm = 5e-6.
"""

from __future__ import annotations

import math
from typing import Any

from groundspeed.operator import Input, Operator, Tolerance, Traffic, case, data

FILLS = ("full", "ragged", "one")
LAYOUTS = ("contiguous", "transposed")


def lengths_of(B: int, S: int, fill: str) -> list[int]:
    """Valid positions of each sequence. Raises ValueError for an unknown fill."""
    if fill not in FILLS:
        raise ValueError(f"attention_decode: unknown fill {fill!r}, expected one of {', '.join(FILLS)}")
    if fill == "ragged":
        return [max(1, S * (1 + 7 * b % B) // B) for b in range(B)]
    return [S if fill == "full" else 1] * B


def inputs(
    generator: Any,
    dtype: Any,
    device: Any,
    B: int,
    H: int,
    G: int,
    S: int,
    D: int,
    fill: str = "ragged",
    layout: str = "contiguous",
) -> dict[str, Input]:
    """q [B, H, D], caches k and v [B, H/G, S, D] in the named layout, lengths [B] of int32."""
    import torch

    if layout not in LAYOUTS or H % G:
        raise ValueError(f"attention_decode: no layout {layout!r} of H={H}, G={G}: H is a multiple of G")
    lengths = torch.tensor(lengths_of(B, S, fill), dtype=torch.int32, device=device)
    behind = torch.arange(S, device=device)[None, :] >= lengths[:, None]
    made: dict[str, Input] = {
        "q": data(torch.randn((B, H, D), generator=generator, device=device, dtype=torch.float32).to(dtype))
    }
    for name in ("k", "v"):
        shape = (B, S, H // G, D) if layout == "transposed" else (B, H // G, S, D)
        cache = torch.randn(shape, generator=generator, device=device, dtype=torch.float32)
        cache = cache.transpose(1, 2) if layout == "transposed" else cache
        cache.mul_(torch.where(behind, 30.0, 1.0)[:, None, :, None])
        made[name] = data(cache.to(dtype))
    return {**made, "lengths": data(lengths)}


def reference(q: Any, k: Any, v: Any, lengths: Any) -> Any:
    """The float64 formula, sequence by sequence."""
    import torch

    size = q.shape[-1]
    out = torch.empty_like(q)
    for batch, length in enumerate(lengths.tolist()):
        queries = q[batch].reshape(k.shape[1], -1, size)
        scores = queries @ k[batch, :, :length].transpose(-2, -1) / math.sqrt(size)
        out[batch] = (torch.softmax(scores, dim=-1) @ v[batch, :, :length]).reshape(-1, size)
    return out


def positions(B: int, S: int, fill: str) -> int:
    return sum(lengths_of(B, S, fill))


def flops(B: int, H: int, G: int, S: int, D: int, fill: str = "ragged", layout: str = "contiguous") -> int:
    """A multiplication and an addition for each of D elements, for each pair, in both products."""
    return 4 * D * H * positions(B, S, fill)


def traffic(
    itemsize: int, B: int, H: int, G: int, S: int, D: int, fill: str = "ragged", layout: str = "contiguous"
) -> Traffic:
    """The valid positions of both caches, q and the lengths read once, the output written once."""
    caches = 2 * (H // G) * D * positions(B, S, fill) * itemsize
    return Traffic(read=caches + B * H * D * itemsize + 4 * B, write=B * H * D * itemsize)


def sequences(B: int, H: int, G: int, S: int, D: int, fill: str = "ragged", layout: str = "contiguous") -> int:
    return B


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    samples=sequences,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={
        "float32": Tolerance(rtol=1e-5, atol=1e-5, norm=5e-6),
        "float16": Tolerance(rtol=2.0**-10, atol=2.0**-8, norm=2.0**-10),
        "bfloat16": Tolerance(rtol=2.0**-7, atol=2.0**-5, norm=2.0**-7),
    },
    check_shapes=(
        {"B": 0, "H": 4, "G": 2, "S": 8, "D": 64, "fill": "full"},
        {"B": 1, "H": 1, "G": 1, "S": 1, "D": 64, "fill": "full"},
        {"B": 3, "H": 2, "G": 2, "S": 37, "D": 64, "fill": "ragged"},
        {"B": 2, "H": 3, "G": 3, "S": 270, "D": 128, "fill": "ragged"},
        {"B": 1, "H": 9, "G": 9, "S": 8500, "D": 64, "fill": "full"},
        {"B": 2, "H": 2, "G": 1, "S": 130, "D": 64, "fill": "one"},
        {"B": 2, "H": 2, "G": 2, "S": 90, "D": 33, "fill": "ragged"},
        {"B": 2, "H": 4, "G": 2, "S": 65, "D": 128, "fill": "ragged", "layout": "transposed"},
    ),
    bench_shapes=(
        {"B": 2, "H": 8, "G": 2, "S": 512, "D": 64, "fill": "ragged"},
        {"B": 16, "H": 32, "G": 4, "S": 8192, "D": 128, "fill": "ragged"},
        {"B": 1, "H": 32, "G": 4, "S": 65536, "D": 128, "fill": "full"},
        {"B": 32, "H": 16, "G": 1, "S": 4096, "D": 64, "fill": "ragged"},
        {"B": 64, "H": 64, "G": 8, "S": 4096, "D": 128, "fill": "ragged"},
    ),
    tiers={
        "small": (case("float32", B=2, H=8, G=2, S=512, D=64, fill="ragged"),),
        "core": (
            case("bfloat16", B=16, H=32, G=4, S=8192, D=128, fill="ragged"),
            case("bfloat16", B=1, H=32, G=4, S=65536, D=128, fill="full"),
            case("float16", B=32, H=16, G=1, S=4096, D=64, fill="ragged"),
            case("float16", B=64, H=64, G=8, S=4096, D=128, fill="ragged"),
        ),
    },
)
