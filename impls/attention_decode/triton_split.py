"""A program for each chunk of a cache's head, the queries that share it in one tile, then a merge (flash-decoding).

Memory-bound: valid positions of both caches read once; of each chunk a float32 sum of values, a maximum and a sum of
weights are written and read again, G/256 of its bytes in 16-bit types. The queries are padded to 16 rows, the least
that tl.dot takes: tensor cores have time to spare. Predicted: 85 % of the read ceiling and more.

Reached on nvidia-h200 at 968ac8c4: 142 µs for float16 B=64,H=64,G=8,S=4096,D=128,fill=ragged, 3.86 TB/s, 83 % of the
memory ceiling, 3.26 times as fast as torch_eager.
"""

import math

import torch
import triton
import triton.language as tl

from .chunks import chunk_length

LOG2_E = 1.44269504088896340736
MANY_CHUNKS = 32  # beyond, several warps share what there is to merge for a row


def _config(block, stages, warps):
    return triton.Config({"BLOCK": block, "STAGES": stages}, num_stages=stages, num_warps=warps)


configs = [_config(64, 3, 4), _config(128, 2, 4), _config(32, 4, 2)]


def pruned(candidates, arguments, **_):
    """Float32 products are made of three, whose parts want registers: the small tile. 16-bit types want the others."""
    wide = arguments["q"].element_size() == 4
    return [config for config in candidates if wide == (config.kwargs["BLOCK"] == 32)] or candidates[:1]


@triton.autotune(
    configs=configs,
    key=["splits", "chunk", "GROUP", "SIZE"],
    prune_configs_by={"early_config_prune": pruned},
)
@triton.jit
def decode_split(
    q, k, v, lengths, parts, stats, KV_HEADS, splits, chunk, scale,
    k_batch, k_head, k_row, v_batch, v_head, v_row,
    GROUP: tl.constexpr, QUERIES: tl.constexpr, SIZE: tl.constexpr, D: tl.constexpr, INTERPRETED: tl.constexpr,
    BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Scores and values of one chunk: parts [B·H, splits, SIZE] relative to 2^maximum; stats are maximum and sum."""
    pair = tl.program_id(0)
    split = tl.program_id(1)
    length = tl.load(lengths + pair // KV_HEADS)
    first = split * chunk
    if first < length:
        last = tl.minimum(first + chunk, length)
        query = tl.arange(0, QUERIES)
        column = tl.arange(0, D)
        row = pair.to(tl.int64) * GROUP + query
        real = (query < GROUP)[:, None] & (column < SIZE)[None, :]
        queries = tl.load(q + row[:, None] * SIZE + column[None, :], mask=real, other=0.0)
        k += (pair // KV_HEADS).to(tl.int64) * k_batch + (pair % KV_HEADS).to(tl.int64) * k_head
        v += (pair // KV_HEADS).to(tl.int64) * v_batch + (pair % KV_HEADS).to(tl.int64) * v_head
        if INTERPRETED:  # the interpreter multiplies the bits of bfloat16 as if they were integers
            queries = queries.to(tl.float32)
        sums = tl.zeros((QUERIES, D), tl.float32)
        total = tl.zeros((QUERIES,), tl.float32)
        top = tl.full((QUERIES,), float("-inf"), tl.float32)
        for start in tl.range(first, last, BLOCK, num_stages=STAGES):
            key = start + tl.arange(0, BLOCK)
            inside = (key < last)[:, None] & (column < SIZE)[None, :]
            place = key.to(tl.int64)[:, None]
            keys = tl.load(k + place * k_row + column[None, :], mask=inside, other=0.0)
            values = tl.load(v + place * v_row + column[None, :], mask=inside, other=0.0)
            if INTERPRETED:
                keys = keys.to(tl.float32)
                values = values.to(tl.float32)
            scores = tl.dot(queries, keys.T, input_precision="tf32x3")
            scores = tl.where((key < last)[None, :], scores, float("-inf"))
            higher = tl.maximum(top, tl.max(scores, 1) * scale)
            weights = tl.math.exp2(scores * scale - higher[:, None])
            shrink = tl.math.exp2(top - higher)
            total = total * shrink + tl.sum(weights, 1)
            weights = weights.to(q.dtype.element_ty)
            if INTERPRETED:
                weights = weights.to(tl.float32)
            sums = tl.dot(weights, values, sums * shrink[:, None], input_precision="tf32x3")
            top = higher
        at = row * splits + split
        tl.store(parts + at[:, None] * SIZE + column[None, :], sums, mask=real)
        tl.store(stats + at * 2, top, mask=query < GROUP)
        tl.store(stats + at * 2 + 1, total, mask=query < GROUP)


@triton.jit
def decode_merge(
    parts, stats, lengths, out, HEADS, splits, chunk,
    SIZE: tl.constexpr, SLICE: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    """out [B·H, SIZE]: the chunks' sums under their common maximum, divided by the sum of all weights."""
    row = tl.program_id(0)
    column = tl.program_id(1) * SLICE + tl.arange(0, SLICE)
    count = tl.cdiv(tl.load(lengths + row // HEADS), chunk)
    sums = tl.zeros((SLICE,), tl.float32)
    total = 0.0
    top = float("-inf")
    for first in range(0, count, SPLITS):
        split = first + tl.arange(0, SPLITS)
        at = row.to(tl.int64) * splits + split
        maxima = tl.load(stats + at * 2, mask=split < count, other=float("-inf"))
        totals = tl.load(stats + at * 2 + 1, mask=split < count, other=0.0)
        inside = (split < count)[:, None] & (column < SIZE)[None, :]
        tile = tl.load(parts + at[:, None] * SIZE + column[None, :], mask=inside, other=0.0)
        higher = tl.maximum(top, tl.max(maxima, 0))
        factors = tl.math.exp2(maxima - higher)
        shrink = tl.math.exp2(top - higher)
        total = total * shrink + tl.sum(totals * factors, 0)
        sums = sums * shrink + tl.sum(tile * factors[:, None], 0)
        top = higher
    tl.store(out + row.to(tl.int64) * SIZE + column, (sums / total).to(out.dtype.element_ty), mask=column < SIZE)


def merging(rows, splits, size):
    """How rows are merged: elements a program makes of one, chunks it holds at a time, warps.

    Of few chunks a warp takes a row whole, each lane its own elements of every chunk, so that nothing crosses lanes: in
    programs of four warps and 32 elements merging took 17.8 of 156 µs. Few rows of many chunks want more programs.
    """
    if splits > MANY_CHUNKS:
        return {"SLICE": 32, "SPLITS": min(triton.next_power_of_2(splits), 128), "num_warps": 4}
    whole = max(triton.next_power_of_2(size), 16)
    return {"SLICE": min(whole, 128 if rows >= 2048 else 32), "SPLITS": 8, "num_warps": 1}


def prepare(q, k, v, lengths):
    batches, heads, size = q.shape
    kv_heads, capacity = k.shape[1], k.shape[2]
    group, pairs = heads // max(kv_heads, 1), batches * kv_heads
    chunk = chunk_length(pairs, capacity)
    splits = triton.cdiv(capacity, chunk)
    constants = {
        "GROUP": group,
        "QUERIES": max(triton.next_power_of_2(group), 16),
        "SIZE": size,
        "D": max(triton.next_power_of_2(size), 16),
        "INTERPRETED": bool(triton.knobs.runtime.interpret),
    }
    merge = merging(batches * heads, splits, size)
    scale = LOG2_E / math.sqrt(size)

    def run():
        out = torch.empty((batches, heads, size), dtype=q.dtype, device=q.device)
        if out.numel():
            queries = q.contiguous()
            keys, values = (cache if cache.stride(-1) == 1 else cache.contiguous() for cache in (k, v))
            parts = torch.empty((batches * heads, splits, size), dtype=torch.float32, device=q.device)
            stats = torch.empty((batches * heads, splits, 2), dtype=torch.float32, device=q.device)
            decode_split[(pairs, splits)](
                queries, keys, values, lengths, parts, stats, kv_heads, splits, chunk, scale,
                *keys.stride()[:3], *values.stride()[:3], **constants,
            )  # fmt: skip
            decode_merge[(batches * heads, triton.cdiv(size, merge["SLICE"]))](
                parts, stats, lengths, out, heads, splits, chunk, SIZE=size, **merge
            )
        return out

    run()
    return run
