"""Four kernels: grad_h with all that follows in its epilogue, both gate gradients at once, grad_down, and grad_x.

Compute-bound: 12·T·D·H FLOPs in four launches; transposed factors are read as they lie, by their strides. Of eager's
15·T·H elements of traffic between the products 5·T·H remain: z and u read, grad_z, grad_u and h written. A program of
the second kernel has a tile of one gate gradient; slices of xᵀ are shared in L2. Two sums in one program cost 166 µs
for D = 2048 on an H200 at 968ac8c4, two products of cuBLAS 132; the first kernel, one program a multiprocessor, so that
nothing was multiplied while it wrote, 126 µs, of which cuBLAS takes 59 to multiply. grad_x is one float32 sum over both
projections.

Predicted for bfloat16 and D = 2048: 90 µs, 26 of them traffic that is hidden by half, then 135, 70 and 130 as before:
425 µs, 1.15 times eager.

Reached on nvidia-h200 at 968ac8c4: 498 µs for bfloat16 T=2048,D=2048,H=5504, 556 TFLOP/s, 72 % of the compute ceiling,
0.978 times as fast as torch_eager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from .._triton.product import FLOAT32_CONFIGS, GROUP_M, HEURISTICS, config, factor_slice, product, tile_of
from .._triton.product import configs as candidates
from .._triton.product import pruned as fitting
from .._triton.rounding import rounded

configs = candidates()
# Where much follows the sums: two programs of 128 × 128 share a multiprocessor, 104 registers a thread, and one
# multiplies while the other reads z and u and writes three results.
hidden_configs = [
    *FLOAT32_CONFIGS,
    config(64, 64, 64, 4, 4),
    config(128, 64, 64, 4, 4),
    config(128, 128, 64, 3, 8),
    config(128, 256, 64, 3, 8),
]


def pruned(tiles: list[triton.Config], arguments: dict[str, Any], **options: Any) -> list[triton.Config]:
    """Two of those that a product alone would time: there are four kernels to compile."""
    return fitting(tiles, arguments, **options)[-2:]


@triton.jit
def halves(tile):
    """The left and the right half of a tile's columns."""
    return tl.split(tl.permute(tl.reshape(tile, (tile.shape[0], 2, tile.shape[1] // 2)), (0, 2, 1)))


@triton.jit
def join(grad, z, u, grad_z, grad_u, h, rows, columns, M, N, INTERPRETED: tl.constexpr):
    """grad_z, grad_u and h of a tile of grad_h."""
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    places = rows.to(tl.int64)[:, None] * N + columns[None, :]
    gate = tl.load(z + places, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(u + places, mask=inside, other=0.0).to(tl.float32)
    s = tl.sigmoid(gate)
    silu = gate * s
    element: tl.constexpr = h.dtype.element_ty
    tl.store(grad_z + places, rounded(grad * up * (s + silu * (1.0 - s)), element, INTERPRETED), mask=inside)
    tl.store(grad_u + places, rounded(grad * silu, element, INTERPRETED), mask=inside)
    tl.store(h + places, rounded(silu * up, element, INTERPRETED), mask=inside)


@triton.autotune(configs=hidden_configs, key=["M", "N", "K"], prune_configs_by={"early_config_prune": pruned})
@triton.heuristics(HEURISTICS)
@triton.jit
def swiglu_backward_hidden(
    a, b, z, u, grad_z, grad_u, h, M, N, K, a_row, a_column,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr, INTERPRETED: tl.constexpr, EVEN_K: tl.constexpr,
):  # fmt: skip
    """a [M, K] is grad_output, b [N, K] is down; the others are [M, N]."""
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    grad = product(a, b, rows, columns, M, N, K, a_row, a_column, 1, K, BLOCK_K, EVEN_K, INTERPRETED)
    # A quarter of the columns at a time: registers hold the sums and a quarter of z and u, not all of them.
    QUARTER: tl.constexpr = BLOCK_N // 4
    left, right = halves(grad)
    first, second = halves(left)
    third, fourth = halves(right)
    own = tile_n * BLOCK_N + tl.arange(0, QUARTER)
    join(first, z, u, grad_z, grad_u, h, rows, own, M, N, INTERPRETED)
    join(second, z, u, grad_z, grad_u, h, rows, own + QUARTER, M, N, INTERPRETED)
    join(third, z, u, grad_z, grad_u, h, rows, own + 2 * QUARTER, M, N, INTERPRETED)
    join(fourth, z, u, grad_z, grad_u, h, rows, own + 3 * QUARTER, M, N, INTERPRETED)


@triton.autotune(configs=configs, key=["M", "N", "K"], prune_configs_by={"early_config_prune": pruned})
@triton.heuristics(HEURISTICS)
@triton.jit
def swiglu_backward_gates(
    a, b, grad_gate, grad_up, M, N, K, a_row, a_column,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr, INTERPRETED: tl.constexpr, EVEN_K: tl.constexpr,
):  # fmt: skip
    """a [M, K] is xᵀ; b [2, K, N] holds grad_z and grad_u; the results [M, N]. A program has a tile of one of them."""
    tiles_n = tl.cdiv(N, BLOCK_N)
    tile_m, tile = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), 2 * tiles_n, GROUP)
    side = tile // tiles_n
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    grad = b + side.to(tl.int64) * K * N
    total = product(a, grad, rows, columns, M, N, K, a_row, a_column, N, 1, BLOCK_K, EVEN_K, INTERPRETED)
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    places = rows.to(tl.int64)[:, None] * N + columns[None, :]
    result = rounded(total, grad_gate.dtype.element_ty, INTERPRETED)
    if side == 0:
        tl.store(grad_gate + places, result, mask=inside)
    else:
        tl.store(grad_up + places, result, mask=inside)


@triton.autotune(configs=configs, key=["M", "N", "K"], prune_configs_by={"early_config_prune": pruned})
@triton.heuristics(HEURISTICS)
@triton.jit
def swiglu_backward_down(
    a, b, c, M, N, K, b_row, b_column,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr, INTERPRETED: tl.constexpr, EVEN_K: tl.constexpr,
):  # fmt: skip
    """c [M, N] = aᵀ · b of a [K, M], which is h, and b [K, N], which is grad_output."""
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    total = product(a, b, rows, columns, M, N, K, 1, M, b_row, b_column, BLOCK_K, EVEN_K, INTERPRETED)
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    places = c + rows.to(tl.int64)[:, None] * N + columns[None, :]
    tl.store(places, rounded(total, c.dtype.element_ty, INTERPRETED), mask=inside)


@triton.jit
def add_product(
    total, a, b, rows, columns, M, N, K, BLOCK_K: tl.constexpr, EVEN_K: tl.constexpr, INTERPRETED: tl.constexpr
):
    """total + a · bᵀ of a [M, K] and b [N, K]: a second sum beside the first would not leave room for the factors."""
    inner = tl.arange(0, BLOCK_K)
    a_places = a + (rows % M).to(tl.int64)[:, None] * K + inner[None, :]
    b_places = b + inner[:, None] + (columns % N).to(tl.int64)[None, :] * K
    for first in range(0, K, BLOCK_K):
        a_tile = factor_slice(a_places, inner[None, :], K - first, EVEN_K, INTERPRETED)
        b_tile = factor_slice(b_places, inner[:, None], K - first, EVEN_K, INTERPRETED)
        total = tl.dot(a_tile, b_tile, total, input_precision="ieee")
        a_places += BLOCK_K
        b_places += BLOCK_K
    return total


@triton.autotune(configs=configs, key=["M", "N", "K"], prune_configs_by={"early_config_prune": pruned})
@triton.heuristics(HEURISTICS)
@triton.jit
def swiglu_backward_input(
    a, grad_u, gate, up, c, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr, INTERPRETED: tl.constexpr, EVEN_K: tl.constexpr,
):  # fmt: skip
    """c [M, N] = a · gateᵀ + grad_u · upᵀ of a [M, K], which is grad_z, and gate and up [N, K]."""
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    total = add_product(total, a, gate, rows, columns, M, N, K, BLOCK_K, EVEN_K, INTERPRETED)
    total = add_product(total, grad_u, up, rows, columns, M, N, K, BLOCK_K, EVEN_K, INTERPRETED)
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    places = c + rows.to(tl.int64)[:, None] * N + columns[None, :]
    tl.store(places, rounded(total, c.dtype.element_ty, INTERPRETED), mask=inside)


def tiles(rows: int, columns: int, sides: int = 1) -> Callable[[dict[str, int]], tuple[int]]:
    return lambda chosen: (triton.cdiv(rows, chosen["BLOCK_M"]) * triton.cdiv(columns, chosen["BLOCK_N"]) * sides,)


def prepare(
    grad_output: torch.Tensor,
    x: torch.Tensor,
    z: torch.Tensor,
    u: torch.Tensor,
    gate: torch.Tensor,
    up: torch.Tensor,
    down: torch.Tensor,
) -> Callable[[], tuple[torch.Tensor, ...]]:
    (T, D), H = x.shape, z.shape[1]
    fixed = {"GROUP": GROUP_M, "INTERPRETED": bool(triton.knobs.runtime.interpret)}

    def run() -> tuple[torch.Tensor, ...]:
        grads = torch.empty((2, T, H), dtype=z.dtype, device=z.device)  # of z and of u
        grad_z, grad_u, h = grads[0], grads[1], torch.empty_like(z)
        grad_x = torch.empty((T, D), dtype=x.dtype, device=x.device)
        grad_gate, grad_up, grad_down = (torch.empty_like(one) for one in (gate, up, down))
        if h.numel():
            strides = grad_output.stride()
            swiglu_backward_hidden[tiles(T, H)](grad_output, down, z, u, grad_z, grad_u, h, T, H, D, *strides, **fixed)
        if gate.numel():
            across, along = x.stride(1), x.stride(0)
            swiglu_backward_gates[tiles(D, H, sides=2)](x, grads, grad_gate, grad_up, D, H, T, across, along, **fixed)
            swiglu_backward_down[tiles(H, D)](h, grad_output, grad_down, H, D, T, *grad_output.stride(), **fixed)
        if grad_x.numel():
            swiglu_backward_input[tiles(T, D)](grad_z, grad_u, gate, up, grad_x, T, D, H, **fixed)
        return grad_x, grad_gate, grad_up, grad_down

    run()
    return run
