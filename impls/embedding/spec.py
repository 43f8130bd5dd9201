"""Rows of a table [V, D] by the numbers ids [N] of int64: a token embedding. Memory-bound, without arithmetic.

ids are uniform in 0 to V - 1, with repetition. Text is not uniform: its frequent tokens are found in L2, so uniform ids
are the hard case. The table is a weight, the ids are data.

Bytes: a row that several ids name must be read once. N uniform ids name V·(1 - (1 - 1/V)^N) different rows on average
(0.94·N at N = V/8; the spread is below 0.2 % at the bench shapes): those rows and the ids are read, N rows are written.
No element changes, hence the tolerance: the output must be exact. ``flops`` is 0.
"""

from __future__ import annotations

import math
from typing import Any

from groundspeed.operator import Input, Operator, Tolerance, Traffic, case, data, strided, weight

EXACT = Tolerance(rtol=0.0, atol=0.0)


def inputs(
    generator: Any, dtype: Any, device: Any, V: int, N: int, D: int, layout: str = "contiguous"
) -> dict[str, Input]:
    """table [V, D] from N(0, 1), ids [N] uniform in 0 to V - 1; with ``strided`` the ids have gaps."""
    import torch

    if layout not in ("contiguous", "strided"):
        raise ValueError(f"embedding: unknown layout {layout!r}, expected contiguous or strided")
    table = torch.randn((V, D), generator=generator, device=device, dtype=torch.float32).to(dtype)
    ids = torch.randint(V, (N,), generator=generator, device=device)
    return {"table": weight(table), "ids": data(strided(ids) if layout == "strided" else ids)}


def reference(table: Any, ids: Any) -> Any:
    return table.index_select(0, ids)


def flops(V: int, N: int, D: int, layout: str = "contiguous") -> int:
    return 0


def different_rows(V: int, N: int) -> int:
    """How many rows N uniform ids name, in the mean: V·(1 - (1 - 1/V)^N)."""
    return round(-V * math.expm1(N * math.log1p(-1.0 / V))) if V > 1 else min(V, N)


def traffic(itemsize: int, V: int, N: int, D: int, layout: str = "contiguous") -> Traffic:
    return Traffic(read=different_rows(V, N) * D * itemsize + 8 * N, write=N * D * itemsize)


def tokens(V: int, N: int, D: int, layout: str = "contiguous") -> int:
    return N


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    samples=tokens,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={"float32": EXACT, "float16": EXACT, "bfloat16": EXACT},
    check_shapes=(
        {"V": 5, "N": 0, "D": 8},
        {"V": 1, "N": 3, "D": 1},
        {"V": 10, "N": 37, "D": 33},
        {"V": 1000, "N": 65, "D": 768},
        {"V": 300, "N": 19, "D": 4104},
        {"V": 50, "N": 21, "D": 64, "layout": "strided"},
    ),
    bench_shapes=(
        {"V": 32000, "N": 2048, "D": 768},
        {"V": 50257, "N": 32768, "D": 1024},
        {"V": 128256, "N": 16384, "D": 4096},
        {"V": 128256, "N": 32768, "D": 8192},
    ),
    tiers={
        "small": (case("float32", V=32000, N=2048, D=768),),
        "core": (
            case("bfloat16", V=50257, N=32768, D=1024),
            case("float16", V=128256, N=16384, D=4096),
            case("float32", V=128256, N=16384, D=4096),
            case("bfloat16", V=128256, N=32768, D=8192),
        ),
    },
)
