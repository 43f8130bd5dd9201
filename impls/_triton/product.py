"""What Triton kernels around a matrix product share: which tile a program has, the sum over slices of K, and the tiles
worth timing.

A kernel that uses ``configs`` and ``pruned`` has the parameters M, N, K and BLOCK_M, BLOCK_N, BLOCK_K, and the
heuristic ``EVEN_K``. Sums are float32; float32 factors are multiplied on the CUDA cores (input_precision "ieee"), never
as TF32.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

GROUP_M = 8


def config(block_m: int, block_n: int, block_k: int, stages: int, warps: int) -> triton.Config:
    blocks = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k}
    return triton.Config(blocks, num_stages=stages, num_warps=warps)


# From small tiles to large ones. 128 × 128 by four warps leaves room for two programs a multiprocessor, of which one's
# epilogue overlaps the other's products.
FLOAT32_CONFIGS = [config(64, 64, 32, 3, 4), config(128, 64, 32, 3, 4), config(128, 128, 32, 3, 8)]
CONFIGS = [
    config(64, 64, 64, 4, 4),
    config(128, 64, 64, 4, 4),
    config(128, 128, 64, 3, 4),
    config(128, 128, 64, 4, 8),
    config(128, 256, 64, 3, 8),
]

_TILES_IN_FLIGHT = 96  # fewer tiles than this leave a large GPU idle
_MOST_TIMED = 3
_MOST_SUMS = 128  # a thread, of its 255 registers


def configs(sides: int = 1) -> list[triton.Config]:
    """All candidates for programs that have one sum of BLOCK_M × BLOCK_N, or two: those that do not spill."""

    def sums(candidate: triton.Config) -> int:
        tile = candidate.kwargs["BLOCK_M"] * candidate.kwargs["BLOCK_N"]
        return int(sides * tile // (32 * candidate.num_warps))

    return [candidate for candidate in FLOAT32_CONFIGS[::-1] + CONFIGS if sums(candidate) <= _MOST_SUMS]


def pruned(candidates: list[triton.Config], arguments: dict[str, Any], **_: Any) -> list[triton.Config]:
    """The candidates worth timing: the largest tiles that fill the GPU; float32 has its own."""
    wide = arguments["a"].element_size() == 4
    usable = sorted(
        (candidate for candidate in candidates if wide == (candidate.kwargs["BLOCK_K"] == 32)),
        key=lambda candidate: candidate.kwargs["BLOCK_M"] * candidate.kwargs["BLOCK_N"],
    )

    def tiles(candidate: triton.Config) -> int:
        across = triton.cdiv(arguments["N"], candidate.kwargs["BLOCK_N"])
        return int(triton.cdiv(arguments["M"], candidate.kwargs["BLOCK_M"]) * across)

    filling = [candidate for candidate in usable if tiles(candidate) >= _TILES_IN_FLIGHT]
    return filling[-_MOST_TIMED:] or usable[:1]


HEURISTICS = {"EVEN_K": lambda arguments: arguments["K"] % arguments["BLOCK_K"] == 0}


@triton.jit
def tile_of(program, tiles_m, tiles_n, GROUP: tl.constexpr):
    """Row and column of a program's tile: GROUP tiles down, then one to the right, so that neighbours in time share
    slices in L2."""
    group_size = GROUP * tiles_n
    first_m = (program // group_size) * GROUP
    group_rows = min(tiles_m - first_m, GROUP)
    return first_m + (program % group_size) % group_rows, (program % group_size) // group_rows


@triton.jit
def factor_slice(places, along, left, EVEN_K: tl.constexpr, INTERPRETED: tl.constexpr):
    """A slice of a factor; ``along`` is its index along K, of which ``left`` exist."""
    if EVEN_K:
        tile = tl.load(places)
    else:
        tile = tl.load(places, mask=along < left, other=0.0)
    if INTERPRETED:  # the interpreter multiplies the bits of bfloat16 as if they were integers
        tile = tile.to(tl.float32)
    return tile


@triton.jit
def product(
    a,
    b,
    rows,
    columns,
    M,
    N,
    K,
    a_row_stride,
    a_column_stride,
    b_row_stride,
    b_column_stride,
    BLOCK_K: tl.constexpr,
    EVEN_K: tl.constexpr,
    INTERPRETED: tl.constexpr,
):
    """Float32 sums of ``rows`` of A [M, K] times ``columns`` of B [K, N]."""
    inner = tl.arange(0, BLOCK_K)
    # Rows and columns beyond the edge wrap around to valid ones: cheaper than a mask in the loop, and never stored.
    a_places = a + (rows % M).to(tl.int64)[:, None] * a_row_stride + inner[None, :] * a_column_stride
    b_places = b + inner.to(tl.int64)[:, None] * b_row_stride + (columns % N)[None, :] * b_column_stride
    total = tl.zeros((rows.shape[0], columns.shape[0]), tl.float32)
    for first in range(0, K, BLOCK_K):
        a_tile = factor_slice(a_places, inner[None, :], K - first, EVEN_K, INTERPRETED)
        b_tile = factor_slice(b_places, inner[:, None], K - first, EVEN_K, INTERPRETED)
        total = tl.dot(a_tile, b_tile, total, input_precision="ieee")
        a_places += BLOCK_K * a_column_stride
        b_places += BLOCK_K * b_row_stride
    return total
