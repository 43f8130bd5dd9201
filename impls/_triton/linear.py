"""x · W + b with what follows it in the epilogue: GELU, or a residual. The product is product.py's; all that follows is
applied to float32 sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from .activation import gelu
from .product import GROUP_M, HEURISTICS, config, product, tile_of
from .rounding import rounded

configs = [
    config(128, 256, 64, 3, 8),
    config(128, 128, 64, 4, 8),
    config(128, 128, 64, 3, 4),
    config(64, 128, 64, 4, 4),
    config(64, 64, 64, 5, 4),
]

_FEWEST_TILES = 96  # fewer than this leave a large GPU idle


def pruned(candidates: list[triton.Config], arguments: dict[str, Any], **_: Any) -> list[triton.Config]:
    """At most three, since a layer has several products: the widest tiles of which there are enough to fill a GPU."""

    def tiles(candidate: triton.Config) -> int:
        across = triton.cdiv(arguments["N"], candidate.kwargs["BLOCK_N"])
        return triton.cdiv(arguments["M"], candidate.kwargs["BLOCK_M"]) * across

    filling = [candidate for candidate in candidates if tiles(candidate) >= _FEWEST_TILES]
    return filling[:3] or candidates[-2:]


@triton.autotune(
    configs=configs, key=["M", "N", "K", "GELU", "RESIDUAL"], prune_configs_by={"early_config_prune": pruned}
)
@triton.heuristics(HEURISTICS)
@triton.jit
def linear_kernel(
    x,
    weight,
    bias,
    residual,
    y,
    M,
    N,
    K,
    GELU: tl.constexpr,
    RESIDUAL: tl.constexpr,
    GROUP: tl.constexpr,
    INTERPRETED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    EVEN_K: tl.constexpr,
):
    """x [M, K], weight [K, N], residual and y [M, N], all row-major; bias [N]."""
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    total = product(x, weight, rows, columns, M, N, K, K, 1, N, 1, BLOCK_K, EVEN_K, INTERPRETED)
    total += tl.load(bias + columns, mask=columns < N, other=0.0).to(tl.float32)[None, :]
    if GELU:
        total = gelu(total)
    places = rows.to(tl.int64)[:, None] * N + columns[None, :]
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    if RESIDUAL:
        total += tl.load(residual + places, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + places, rounded(total, y.dtype.element_ty, INTERPRETED), mask=inside)


def linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    residual: torch.Tensor | None = None,
    with_gelu: bool = False,
) -> torch.Tensor:
    """gelu(x · weight + bias), or x · weight + bias + residual: a fresh [M, N]. Matrices are contiguous, 16 bits."""
    rows, inner = x.shape
    columns = weight.shape[1]
    y = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y
    linear_kernel[_grid(rows, columns)](
        x,
        weight,
        bias,
        y if residual is None else residual,
        y,
        rows,
        columns,
        inner,
        GELU=with_gelu,
        RESIDUAL=residual is not None,
        GROUP=GROUP_M,
        INTERPRETED=bool(triton.knobs.runtime.interpret),
    )
    return y


def _grid(rows: int, columns: int) -> Callable[[dict[str, int]], tuple[int]]:
    return lambda chosen: (triton.cdiv(rows, chosen["BLOCK_M"]) * triton.cdiv(columns, chosen["BLOCK_N"]),)
