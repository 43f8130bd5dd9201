"""FlashAttention in Triton: a block of queries a program, keys and values in blocks under a running maximum and sum.

Tiles arrive through tensor descriptors (Hopper's tensor memory accelerator; plain loads on older GPUs), which fill what
lies beyond a sequence with zeros and take any strides that are multiples of 16 bytes. Exponentials are powers of two:
log2(e) is part of the scale. Blocks that need no mask and those that do are walked in two loops. Causal programs are
launched longest first, so that the last to start are the shortest. Float32 factors are multiplied as the sum of three
TF32 products of their high and low parts, which keeps 21 of 24 bits; 16-bit types are multiplied as they are.

Dao, "FlashAttention-2" (2023); Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018).
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

LOG2_E = 1.44269504088896340736
ALIGNMENT = 16  # bytes: what the accelerator asks of rows, strides and the first element


def _set_blocks(arguments: dict[str, Any]) -> None:
    """A descriptor knows the size of its tiles, which is the configuration's."""
    size = arguments["D"]
    arguments["q"].block_shape = [1, 1, arguments["BLOCK_M"], size]
    for name in ("k", "v"):
        arguments[name].block_shape = [1, 1, arguments["BLOCK_N"], size]


def _config(block_m: int, block_n: int, stages: int, warps: int) -> triton.Config:
    blocks = {"BLOCK_M": block_m, "BLOCK_N": block_n, "STAGES": stages}
    return triton.Config(blocks, num_stages=stages, num_warps=warps, pre_hook=_set_blocks)


# Two programs of 4 warps fit on a multiprocessor, and the softmax of one hides behind the products of the other; one of
# 8 warps has longer products. Heads beyond 64 leave shared memory for two stages only.
configs = [
    _config(128, 64, 3, 4),
    _config(128, 64, 2, 4),
    _config(128, 128, 2, 8),
    _config(64, 32, 2, 4),
]


def pruned(candidates: list[triton.Config], arguments: dict[str, Any], **constants: Any) -> list[triton.Config]:
    """Two of them: compiling costs seconds each. The split parts of float32 factors take registers: the small tile."""
    if arguments["out"].element_size() == 4:
        wanted = {(64, 32, 2)}
    else:
        wanted = {(128, 64, 3 if constants["D"] <= 64 else 2), (128, 128, 2)}
    chosen = [c for c in candidates if (c.kwargs["BLOCK_M"], c.kwargs["BLOCK_N"], c.kwargs["STAGES"]) in wanted]
    return chosen or candidates[:1]


@triton.jit
def _tile(descriptor, batch, head, row, ROWS: tl.constexpr, D: tl.constexpr, INTERPRETED: tl.constexpr):
    tile = descriptor.load([batch, head, row, 0]).reshape(ROWS, D)
    if INTERPRETED:  # the interpreter multiplies the bits of bfloat16 as if they were integers
        tile = tile.to(tl.float32)
    return tile


@triton.jit
def _walk(
    sums,
    total,
    top,
    q_tile,
    k,
    v,
    batch,
    head,
    first,
    last,
    rows,
    S,
    scale,
    element: tl.constexpr,
    D: tl.constexpr,
    BLOCK_N: tl.constexpr,
    MASKED: tl.constexpr,
    CAUSAL: tl.constexpr,
    STAGES: tl.constexpr,
    INTERPRETED: tl.constexpr,
):
    """Take in the keys from first to last: sums and total are relative to 2^top, which every row keeps for itself."""
    for start in tl.range(first, last, BLOCK_N, num_stages=STAGES):
        k_tile = _tile(k, batch, head, start, BLOCK_N, D, INTERPRETED)
        scores = tl.dot(q_tile, k_tile.T, input_precision="tf32x3")
        if MASKED:
            columns = start + tl.arange(0, BLOCK_N)
            seen = columns[None, :] < S
            if CAUSAL:
                seen = seen & (columns[None, :] <= rows[:, None])
            scores = tl.where(seen, scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1) * scale)
        weights = tl.math.exp2(scores * scale - higher[:, None])
        shrink = tl.math.exp2(top - higher)
        total = total * shrink + tl.sum(weights, 1)
        sums = sums * shrink[:, None]
        top = higher
        v_tile = _tile(v, batch, head, start, BLOCK_N, D, INTERPRETED)
        weights = weights.to(element)
        if INTERPRETED:
            weights = weights.to(tl.float32)
        sums = tl.dot(weights, v_tile, sums, input_precision="tf32x3")
    return sums, total, top


@triton.autotune(
    configs=configs, key=["H", "S", "D", "SIZE", "CAUSAL"], prune_configs_by={"early_config_prune": pruned}
)
@triton.jit
def attention_flash(
    q,
    k,
    v,
    out,
    H,
    S,
    scale,
    out_batch,
    out_head,
    out_row,
    SIZE: tl.constexpr,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    INTERPRETED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    STAGES: tl.constexpr,
):
    """out [B, H, S, SIZE] in the given strides and 1; D is SIZE rounded up to a power of two."""
    pair = tl.program_id(0)
    batch = pair // H
    head = pair % H
    block = tl.program_id(1)
    if CAUSAL:
        block = tl.num_programs(1) - 1 - block
    first_row = block * BLOCK_M
    rows = first_row + tl.arange(0, BLOCK_M)
    if CAUSAL:
        last = tl.minimum(first_row + BLOCK_M, S)
        whole = first_row // BLOCK_N * BLOCK_N
    else:
        last = S
        whole = S // BLOCK_N * BLOCK_N
    element: tl.constexpr = out.dtype.element_ty
    q_tile = _tile(q, batch, head, first_row, BLOCK_M, D, INTERPRETED)
    sums = tl.zeros((BLOCK_M, D), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    top = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    # fmt: off
    sums, total, top = _walk(sums, total, top, q_tile, k, v, batch, head, 0, whole, rows, S, scale,
                             element, D, BLOCK_N, False, CAUSAL, STAGES, INTERPRETED)
    sums, total, top = _walk(sums, total, top, q_tile, k, v, batch, head, whole, last, rows, S, scale,
                             element, D, BLOCK_N, True, CAUSAL, STAGES, INTERPRETED)
    # fmt: on
    columns = tl.arange(0, D)
    start = out + batch.to(tl.int64) * out_batch + head.to(tl.int64) * out_head
    places = start + rows.to(tl.int64)[:, None] * out_row + columns[None, :]
    inside = (rows[:, None] < S) & (columns[None, :] < SIZE)
    tl.store(places, (sums / total[:, None]).to(element), mask=inside)


def unsupported_size(dtype: str, size: int) -> str | None:
    """Why heads of this size cannot be described to the accelerator, or None."""
    lanes = ALIGNMENT // (4 if dtype == "float32" else 2)
    if size % lanes:
        return f"tensor descriptors need rows in multiples of 16 bytes: head dimensions in multiples of {lanes}"
    return None


def described(tensor: torch.Tensor) -> TensorDescriptor:
    """A [B, H, S, D] tensor as it lies, or copied where its strides cannot be described. The tile is set at launch."""
    aligned = all(stride * tensor.element_size() % ALIGNMENT == 0 for stride in tensor.stride()[:-1])
    if tensor.stride(-1) != 1 or not aligned or tensor.data_ptr() % ALIGNMENT:
        tensor = tensor.contiguous()
    return TensorDescriptor(tensor, list(tensor.shape), list(tensor.stride()), [1, 1, 1, 16])


def flash_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, heads_together: bool = False
) -> torch.Tensor:
    """softmax(q · kᵀ / √D) · v of [B, H, S, D] in any strides: a fresh contiguous tensor.

    With ``heads_together`` it lies in memory as [B, S, H, D], the rows that a projection of all heads reads.
    """
    batches, heads, length, size = q.shape
    shape = (batches, length, heads, size) if heads_together else (batches, heads, length, size)
    out = torch.empty(shape, dtype=q.dtype, device=q.device)
    if heads_together:
        out = out.transpose(1, 2)
    if out.numel():

        def grid(chosen: dict[str, int]) -> tuple[int, int]:
            return batches * heads, triton.cdiv(length, chosen["BLOCK_M"])

        attention_flash[grid](
            described(q),
            described(k),
            described(v),
            out,
            heads,
            length,
            LOG2_E / math.sqrt(size),
            *out.stride()[:3],
            SIZE=size,
            D=triton.next_power_of_2(max(size, 16)),
            CAUSAL=causal,
            INTERPRETED=bool(triton.knobs.runtime.interpret),
        )
    return out
