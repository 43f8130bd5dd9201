"""A block of the product a program, bias and GELU on its float32 sums before the only store.

Compute-bound: 2·M·N·K FLOPs, with 2·M·N elements less of traffic than eager and no rounding before the activation. A
program's epilogue does not overlap its own products; two programs of 128 × 128 on a multiprocessor overlap each
other's. Predicted: ahead of eager where K is small, level with it at K = 4096.

Reached on nvidia-h200 at 968ac8c4: 195 µs for bfloat16 M=4096,N=4096,K=4096, 706 TFLOP/s, 90 % of the compute ceiling,
1.04 times as fast as torch_eager.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl

from .._triton.activation import gelu
from .._triton.product import GROUP_M, HEURISTICS, product, pruned, tile_of
from .._triton.product import configs as candidates
from .._triton.rounding import rounded

configs = candidates()


@triton.autotune(configs=configs, key=["M", "N", "K"], prune_configs_by={"early_config_prune": pruned})
@triton.heuristics(HEURISTICS)
@triton.jit
def matmul_gelu_block(
    a,
    b,
    bias,
    y,
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
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    total = product(a, b, rows, columns, M, N, K, a_row_stride, a_column_stride, N, 1, BLOCK_K, EVEN_K, INTERPRETED)
    total += tl.load(bias + columns, mask=columns < N, other=0.0).to(tl.float32)[None, :]
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    places = y + rows.to(tl.int64)[:, None] * N + columns[None, :]
    tl.store(places, rounded(gelu(total), y.dtype.element_ty, INTERPRETED), mask=inside)


def prepare(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> Callable[[], torch.Tensor]:
    rows, inner = a.shape
    columns = b.shape[1]
    interpreted = bool(triton.knobs.runtime.interpret)

    def grid(chosen: dict[str, int]) -> tuple[int]:
        return (triton.cdiv(rows, chosen["BLOCK_M"]) * triton.cdiv(columns, chosen["BLOCK_N"]),)

    def run() -> torch.Tensor:
        y = torch.empty((rows, columns), dtype=a.dtype, device=a.device)
        if y.numel():
            matmul_gelu_block[grid](
                a, b, bias, y, rows, columns, inner, *a.stride(), GROUP=GROUP_M, INTERPRETED=interpreted
            )
        return y

    run()
    return run
