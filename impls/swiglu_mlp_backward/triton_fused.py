"""Four kernels: grad_h with all that follows in its epilogue, both gate gradients over one xᵀ, grad_down, and grad_x.

Compute-bound: 12·T·D·H FLOPs in four launches; transposed factors are read as they lie, by their strides. Of eager's
15·T·H elements of traffic between the products 5·T·H remain: z and u read, grad_z, grad_u and h written. The gradients
of gate and up share the slices of xᵀ, and grad_x is one float32 sum over both projections. Predicted: ahead of eager by
that traffic and ten launches where D is small, behind cuBLAS's products at D = 4096.

Reached on nvidia-h200 at 968ac8c4: 498 µs for bfloat16 T=2048,D=2048,H=5504, 556 TFLOP/s, 72 % of the compute ceiling,
0.978 times as fast as torch_eager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from .._triton.product import GROUP_M, HEURISTICS, factor_slice, product, tile_of
from .._triton.product import configs as candidates
from .._triton.product import pruned as fitting
from .._triton.rounding import rounded

configs = candidates()
double_configs = candidates(sides=2)


def pruned(tiles: list[triton.Config], arguments: dict[str, Any], **options: Any) -> list[triton.Config]:
    """Two of those that a product alone would time: there are four kernels to compile."""
    return fitting(tiles, arguments, **options)[-2:]


def largest(tiles: list[triton.Config], arguments: dict[str, Any], **options: Any) -> list[triton.Config]:
    """The largest tile that fills the GPU, where two sums or an epilogue's operands leave little choice."""
    return fitting(tiles, arguments, **options)[-1:]


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


@triton.autotune(configs=double_configs, key=["M", "N", "K"], prune_configs_by={"early_config_prune": largest})
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
    # Half of the columns at a time: registers hold the sums and two halves of z and u, not all of them.
    left, right = tl.split(tl.permute(tl.reshape(grad, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1)))
    half = tile_n * BLOCK_N + tl.arange(0, BLOCK_N // 2)
    join(left, z, u, grad_z, grad_u, h, rows, half, M, N, INTERPRETED)
    join(right, z, u, grad_z, grad_u, h, rows, half + BLOCK_N // 2, M, N, INTERPRETED)


@triton.autotune(configs=double_configs, key=["M", "N", "K"], prune_configs_by={"early_config_prune": largest})
@triton.heuristics(HEURISTICS)
@triton.jit
def swiglu_backward_gates(
    a, grad_z, grad_u, grad_gate, grad_up, M, N, K, a_row, a_column,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr, INTERPRETED: tl.constexpr, EVEN_K: tl.constexpr,
):  # fmt: skip
    """a [M, K] is xᵀ; grad_z and grad_u [K, N]; the results [M, N]."""
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    # Rows and columns beyond the edge wrap around to valid ones: cheaper than a mask in the loop, and never stored.
    a_places = a + (rows % M).to(tl.int64)[:, None] * a_row + inner.to(tl.int64)[None, :] * a_column
    down = inner.to(tl.int64)[:, None] * N + (columns % N)[None, :]
    z_places = grad_z + down
    u_places = grad_u + down
    gated = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    plain = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(0, K, BLOCK_K):
        a_tile = factor_slice(a_places, inner[None, :], K - first, EVEN_K, INTERPRETED)
        z_tile = factor_slice(z_places, inner[:, None], K - first, EVEN_K, INTERPRETED)
        u_tile = factor_slice(u_places, inner[:, None], K - first, EVEN_K, INTERPRETED)
        gated = tl.dot(a_tile, z_tile, gated, input_precision="ieee")
        plain = tl.dot(a_tile, u_tile, plain, input_precision="ieee")
        a_places += BLOCK_K * a_column
        z_places += BLOCK_K * N
        u_places += BLOCK_K * N
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    places = rows.to(tl.int64)[:, None] * N + columns[None, :]
    tl.store(grad_gate + places, rounded(gated, grad_gate.dtype.element_ty, INTERPRETED), mask=inside)
    tl.store(grad_up + places, rounded(plain, grad_up.dtype.element_ty, INTERPRETED), mask=inside)


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


def tiles(rows: int, columns: int) -> Callable[[dict[str, int]], tuple[int]]:
    return lambda chosen: (triton.cdiv(rows, chosen["BLOCK_M"]) * triton.cdiv(columns, chosen["BLOCK_N"]),)


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
        grad_z, grad_u, h = (torch.empty_like(z) for _ in range(3))
        grad_x = torch.empty((T, D), dtype=x.dtype, device=x.device)
        grad_gate, grad_up, grad_down = (torch.empty_like(one) for one in (gate, up, down))
        if h.numel():
            strides = grad_output.stride()
            swiglu_backward_hidden[tiles(T, H)](grad_output, down, z, u, grad_z, grad_u, h, T, H, D, *strides, **fixed)
        if gate.numel():
            across, along = x.stride(1), x.stride(0)
            swiglu_backward_gates[tiles(D, H)](x, grad_z, grad_u, grad_gate, grad_up, D, H, T, across, along, **fixed)
            swiglu_backward_down[tiles(H, D)](h, grad_output, grad_down, H, D, T, *grad_output.stride(), **fixed)
        if grad_x.numel():
            swiglu_backward_input[tiles(T, D)](grad_z, grad_u, gate, up, grad_x, T, D, H, **fixed)
        return grad_x, grad_gate, grad_up, grad_down

    run()
    return run
