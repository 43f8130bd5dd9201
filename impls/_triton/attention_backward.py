"""FlashAttention's backward pass in Triton: one kernel for grad_k and grad_v, one for grad_q, no atomic operations.

P is computed anew from the saved log-sum-exp, block by block, and never leaves the multiprocessor: a program of the
first kernel has a block of keys and walks over the queries that see them, one of the second a block of queries and
walks over their keys. Both compute q · kᵀ and grad · vᵀ, seven products in all where one kernel with atomic sums for
grad_q would have five; each sum here has one owner and one order. A small kernel before them makes delta = rowsum(grad
∘ out). Exponentials are powers of two: log2(e) is part of the scale. Blocks that the diagonal does not cross need no
mask. Float32 factors are multiplied as the sum of three TF32 products, which keeps 21 of 24 bits.

Dao, "FlashAttention-2" (2023), algorithm 2.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl

from .rounding import rounded

LOG2_E = tl.constexpr(1.44269504088896340736)
DELTA_ROWS = 32


def _config(own: int, other: int, stages: int, warps: int) -> triton.Config:
    return triton.Config({"OWN": own, "OTHER": other, "STAGES": stages}, num_stages=stages, num_warps=warps)


# OWN rows stay, OTHER rows pass by. Two sums of 128 × 128 fill half the registers of eight warps. Float32's split
# factors take so many that beyond 64 columns both are small.
configs = [
    _config(128, 64, 2, 8),
    _config(128, 32, 3, 8),
    _config(64, 64, 3, 4),
    _config(64, 32, 2, 8),
    _config(32, 32, 1, 8),
]


def pruned(candidates: list[triton.Config], arguments: dict[str, Any], **constants: Any) -> list[triton.Config]:
    """Two of them: compiling costs seconds each. The split parts of float32 factors take registers: the small tile."""
    if arguments["q"].element_size() == 4:
        wanted = {(64, 32, 2) if constants["D"] <= 64 else (32, 32, 1)}
    else:
        wanted = {(128, 64, 2), (64, 64, 3) if constants["D"] <= 64 else (128, 32, 3)}
    chosen = [c for c in candidates if (c.kwargs["OWN"], c.kwargs["OTHER"], c.kwargs["STAGES"]) in wanted]
    return chosen or candidates[:1]


KEY = ["H", "S", "D", "SIZE", "CAUSAL"]


@triton.jit
def _factor(tile, INTERPRETED: tl.constexpr):
    if INTERPRETED:  # the interpreter multiplies the bits of bfloat16 as if they were integers
        tile = tile.to(tl.float32)
    return tile


@triton.jit
def _rows(start, stride, rows, S, SIZE: tl.constexpr, D: tl.constexpr, INTERPRETED: tl.constexpr):
    """Rows of one head [S, SIZE] with zeros beyond, as a factor."""
    columns = tl.arange(0, D)
    places = start + rows.to(tl.int64)[:, None] * stride + columns[None, :]
    if SIZE == D:
        tile = tl.load(places, mask=rows[:, None] < S, other=0.0)
    else:
        tile = tl.load(places, mask=(rows[:, None] < S) & (columns[None, :] < SIZE), other=0.0)
    return _factor(tile, INTERPRETED)


@triton.jit
def _store(start, stride, rows, values, S, SIZE: tl.constexpr, D: tl.constexpr, INTERPRETED: tl.constexpr):
    columns = tl.arange(0, D)
    places = start + rows.to(tl.int64)[:, None] * stride + columns[None, :]
    inside = (rows[:, None] < S) & (columns[None, :] < SIZE)
    tl.store(places, rounded(values, start.dtype.element_ty, INTERPRETED), mask=inside)


@triton.jit
def attention_backward_delta(
    grad, out, delta, H, S, grad_batch, grad_head, grad_row, out_batch, out_head, out_row,
    SIZE: tl.constexpr, D: tl.constexpr, INTERPRETED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    pair = tl.program_id(0)
    batch = (pair // H).to(tl.int64)
    head = (pair % H).to(tl.int64)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    g = _rows(grad + batch * grad_batch + head * grad_head, grad_row, rows, S, SIZE, D, INTERPRETED).to(tl.float32)
    o = _rows(out + batch * out_batch + head * out_head, out_row, rows, S, SIZE, D, INTERPRETED).to(tl.float32)
    tl.store(delta + pair.to(tl.int64) * S + rows, tl.sum(g * o, axis=1), mask=rows < S)


@triton.jit
def _pass_queries(
    sums_k, sums_v, k_tile, v_tile, keys, grad, grad_row, q, q_row, lse, delta, first, last, S, scale,
    element: tl.constexpr, SIZE: tl.constexpr, D: tl.constexpr, OTHER: tl.constexpr, MASKED: tl.constexpr,
    STAGES: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    """Take in the queries from first to last. What lies beyond S has a weight of 2^-inf."""
    for start in tl.range(first, last, OTHER, num_stages=STAGES):
        rows = start + tl.arange(0, OTHER)
        q_tile = _rows(q, q_row, rows, S, SIZE, D, INTERPRETED)
        g_tile = _rows(grad, grad_row, rows, S, SIZE, D, INTERPRETED)
        level = tl.load(lse + rows, mask=rows < S, other=float("inf")) * LOG2_E
        shift = tl.load(delta + rows, mask=rows < S, other=0.0)
        scores = tl.dot(k_tile, q_tile.T, input_precision="tf32x3")
        weights = tl.math.exp2(scores * scale - level[None, :])
        if MASKED:
            weights = tl.where(keys[:, None] <= rows[None, :], weights, 0.0)
        factor = _factor(rounded(weights, element, INTERPRETED), INTERPRETED)
        sums_v = tl.dot(factor, g_tile, sums_v, input_precision="tf32x3")
        slopes = tl.dot(v_tile, g_tile.T, input_precision="tf32x3")
        slopes = weights * (slopes - shift[None, :])
        factor = _factor(rounded(slopes, element, INTERPRETED), INTERPRETED)
        sums_k = tl.dot(factor, q_tile, sums_k, input_precision="tf32x3")
    return sums_k, sums_v


@triton.autotune(configs=configs, key=KEY, prune_configs_by={"early_config_prune": pruned})
@triton.jit
def attention_backward_keys(
    grad, q, k, v, lse, delta, grad_k, grad_v, H, S, scale,
    grad_batch, grad_head, grad_row, q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row,
    SIZE: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr, INTERPRETED: tl.constexpr,
    OWN: tl.constexpr, OTHER: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """grad_k and grad_v [B, H, S, SIZE] contiguous; scale is that of the exponents of 2."""
    pair = tl.program_id(0)
    batch = (pair // H).to(tl.int64)
    head = (pair % H).to(tl.int64)
    first_key = tl.program_id(1) * OWN
    keys = first_key + tl.arange(0, OWN)
    element: tl.constexpr = grad_k.dtype.element_ty
    k_tile = _rows(k + batch * k_batch + head * k_head, k_row, keys, S, SIZE, D, INTERPRETED)
    v_tile = _rows(v + batch * v_batch + head * v_head, v_row, keys, S, SIZE, D, INTERPRETED)
    grad += batch * grad_batch + head * grad_head
    q += batch * q_batch + head * q_head
    saved = pair.to(tl.int64) * S
    sums_k = tl.zeros((OWN, D), tl.float32)
    sums_v = tl.zeros((OWN, D), tl.float32)
    whole = 0
    # fmt: off
    if CAUSAL:  # OWN is a multiple of OTHER
        whole = tl.minimum(first_key + OWN, tl.cdiv(S, OTHER) * OTHER)
        sums_k, sums_v = _pass_queries(sums_k, sums_v, k_tile, v_tile, keys, grad, grad_row, q, q_row, lse + saved,
                                       delta + saved, first_key, whole, S, scale, element, SIZE, D, OTHER, True,
                                       STAGES, INTERPRETED)
    sums_k, sums_v = _pass_queries(sums_k, sums_v, k_tile, v_tile, keys, grad, grad_row, q, q_row, lse + saved,
                                   delta + saved, whole, S, S, scale, element, SIZE, D, OTHER, False,
                                   STAGES, INTERPRETED)
    # fmt: on
    start = saved * SIZE
    _store(grad_k + start, SIZE, keys, sums_k * (scale / LOG2_E), S, SIZE, D, INTERPRETED)
    _store(grad_v + start, SIZE, keys, sums_v, S, SIZE, D, INTERPRETED)


@triton.jit
def _pass_keys(
    sums, q_tile, g_tile, rows, level, shift, k, k_row, v, v_row, first, last, S, scale,
    element: tl.constexpr, SIZE: tl.constexpr, D: tl.constexpr, OTHER: tl.constexpr, MASKED: tl.constexpr,
    CAUSAL: tl.constexpr, STAGES: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    for start in tl.range(first, last, OTHER, num_stages=STAGES):
        keys = start + tl.arange(0, OTHER)
        k_tile = _rows(k, k_row, keys, S, SIZE, D, INTERPRETED)
        v_tile = _rows(v, v_row, keys, S, SIZE, D, INTERPRETED)
        scores = tl.dot(q_tile, k_tile.T, input_precision="tf32x3")
        weights = tl.math.exp2(scores * scale - level[:, None])
        if MASKED:
            seen = keys[None, :] < S
            if CAUSAL:
                seen = seen & (keys[None, :] <= rows[:, None])
            weights = tl.where(seen, weights, 0.0)
        slopes = tl.dot(g_tile, v_tile.T, input_precision="tf32x3")
        slopes = weights * (slopes - shift[:, None])
        factor = _factor(rounded(slopes, element, INTERPRETED), INTERPRETED)
        sums = tl.dot(factor, k_tile, sums, input_precision="tf32x3")
    return sums


@triton.autotune(configs=configs, key=KEY, prune_configs_by={"early_config_prune": pruned})
@triton.jit
def attention_backward_queries(
    grad, q, k, v, lse, delta, grad_q, H, S, scale,
    grad_batch, grad_head, grad_row, q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row,
    SIZE: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr, INTERPRETED: tl.constexpr,
    OWN: tl.constexpr, OTHER: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """grad_q [B, H, S, SIZE] contiguous. Causal programs are launched longest first."""
    pair = tl.program_id(0)
    batch = (pair // H).to(tl.int64)
    head = (pair % H).to(tl.int64)
    block = tl.program_id(1)
    if CAUSAL:
        block = tl.num_programs(1) - 1 - block
    first_row = block * OWN
    rows = first_row + tl.arange(0, OWN)
    element: tl.constexpr = grad_q.dtype.element_ty
    q_tile = _rows(q + batch * q_batch + head * q_head, q_row, rows, S, SIZE, D, INTERPRETED)
    g_tile = _rows(grad + batch * grad_batch + head * grad_head, grad_row, rows, S, SIZE, D, INTERPRETED)
    k += batch * k_batch + head * k_head
    v += batch * v_batch + head * v_head
    saved = pair.to(tl.int64) * S
    level = tl.load(lse + saved + rows, mask=rows < S, other=float("inf")) * LOG2_E
    shift = tl.load(delta + saved + rows, mask=rows < S, other=0.0)
    if CAUSAL:  # OWN is a multiple of OTHER
        last = tl.minimum(first_row + OWN, S)
        whole = first_row
    else:
        last = S
        whole = S // OTHER * OTHER
    sums = tl.zeros((OWN, D), tl.float32)
    # fmt: off
    sums = _pass_keys(sums, q_tile, g_tile, rows, level, shift, k, k_row, v, v_row, 0, whole, S, scale,
                      element, SIZE, D, OTHER, False, CAUSAL, STAGES, INTERPRETED)
    sums = _pass_keys(sums, q_tile, g_tile, rows, level, shift, k, k_row, v, v_row, whole, last, S, scale,
                      element, SIZE, D, OTHER, True, CAUSAL, STAGES, INTERPRETED)
    # fmt: on
    _store(grad_q + saved * SIZE, SIZE, rows, sums * (scale / LOG2_E), S, SIZE, D, INTERPRETED)


def flash_attention_backward(
    grad: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    causal: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Fresh contiguous gradients of q, k and v [B, H, S, D]; inputs in any strides, copied where rows have gaps."""
    batches, heads, length, size = q.shape
    grad, q, k, v, out = (x if x.stride(-1) == 1 else x.contiguous() for x in (grad, q, k, v, out))
    grad_q, grad_k, grad_v = (torch.empty(q.shape, dtype=q.dtype, device=q.device) for _ in range(3))
    if q.numel() == 0:
        return grad_q, grad_k, grad_v
    delta = torch.empty((batches, heads, length), dtype=torch.float32, device=q.device)
    interpreted = bool(triton.knobs.runtime.interpret)
    fixed = {"SIZE": size, "D": triton.next_power_of_2(max(size, 16)), "INTERPRETED": interpreted}
    attention_backward_delta[batches * heads, triton.cdiv(length, DELTA_ROWS)](
        grad, out, delta, heads, length, *grad.stride()[:3], *out.stride()[:3], **fixed, ROWS=DELTA_ROWS, num_warps=4
    )

    def grid(chosen: dict[str, int]) -> tuple[int, int]:
        return batches * heads, triton.cdiv(length, chosen["OWN"])

    scale = LOG2_E.value / math.sqrt(size)
    strides = [stride for x in (grad, q, k, v) for stride in x.stride()[:3]]
    attention_backward_keys[grid](
        grad, q, k, v, lse, delta, grad_k, grad_v, heads, length, scale, *strides, **fixed, CAUSAL=causal
    )
    attention_backward_queries[grid](
        grad, q, k, v, lse, delta, grad_q, heads, length, scale, *strides, **fixed, CAUSAL=causal
    )
    return grad_q, grad_k, grad_v
