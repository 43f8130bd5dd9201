"""The weights stacked beforehand; one launch whose second grid dimension is the projection.

Compute-bound: 6·T·D·N FLOPs. Programs of one projection follow those of another without a gap. Predicted: ahead of
eager by two launches where the products are short, level at 4096³. In float32, without TF32, it is 0.88 times as fast
on an H200 at 968ac8c4: its products are behind cuBLAS's.

Reached on nvidia-h200 at 968ac8c4: 552 µs for bfloat16 T=4096,D=4096,N=4096, 746 TFLOP/s, 95 % of the compute ceiling,
0.967 times as fast as torch_eager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from .._triton.product import GROUP_M, HEURISTICS, product, tile_of
from .._triton.product import configs as candidates
from .._triton.product import pruned as fitting
from .._triton.rounding import rounded

Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]

configs = candidates()


def pruned(tiles: list[triton.Config], arguments: dict[str, Any], **options: Any) -> list[triton.Config]:
    """As for one product, with three times the tiles to fill the GPU."""
    return fitting(tiles, {**arguments, "N": 3 * arguments["N"]}, **options)


@triton.autotune(configs=configs, key=["M", "N", "K"], prune_configs_by={"early_config_prune": pruned})
@triton.heuristics(HEURISTICS)
@triton.jit
def qkv_projection_block(
    a,
    b,
    c,
    M,
    N,
    K,
    a_row_stride,
    a_column_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    INTERPRETED: tl.constexpr,
    EVEN_K: tl.constexpr,
):
    """a [M, K] times b [3, K, N], into c [3, M, N]."""
    projection = tl.program_id(1).to(tl.int64)
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    b += projection * K * N
    c += projection * M * N
    total = product(a, b, rows, columns, M, N, K, a_row_stride, a_column_stride, N, 1, BLOCK_K, EVEN_K, INTERPRETED)
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    places = c + rows.to(tl.int64)[:, None] * N + columns[None, :]
    tl.store(places, rounded(total, c.dtype.element_ty, INTERPRETED), mask=inside)


def prepare(x: torch.Tensor, wq: torch.Tensor, wk: torch.Tensor, wv: torch.Tensor) -> Callable[[], Three]:
    rows, inner = x.shape
    columns = wq.shape[1]
    packed = torch.stack((wq, wk, wv))
    interpreted = bool(triton.knobs.runtime.interpret)

    def grid(chosen: dict[str, int]) -> tuple[int, int]:
        return triton.cdiv(rows, chosen["BLOCK_M"]) * triton.cdiv(columns, chosen["BLOCK_N"]), 3

    def run() -> Three:
        c = torch.empty((3, rows, columns), dtype=x.dtype, device=x.device)
        if c.numel():
            qkv_projection_block[grid](
                x, packed, c, rows, columns, inner, *x.stride(), GROUP=GROUP_M, INTERPRETED=interpreted
            )
        q, k, v = c.unbind()
        return q, k, v

    run()
    return run
