"""One program a row and one read of the logits: a maximum and a sum in every thread, merged once after the loop.

Memory-bound: M·V logits read, M losses written. A turn of the loop takes four 16-byte vectors a thread, laid out so
that a vector is a thread's own: its elements meet in registers, and a thread rescales one sum a turn. A row begins at
its first 16-byte boundary; what lies before that, and behind the last whole turn, is loaded by single elements. So a
misaligned row (V = 50257) costs little more than an aligned one. A strided input is read as it lies. Prediction: level
with cuda_online.

Reached on nvidia-h200 at 968ac8c4: 235 µs for float32 M=2048,V=128256, 4.46 TB/s, 97 % of the memory ceiling, 4.31
times as fast as torch_eager.
"""

import torch
import triton
import triton.language as tl

THREADS = 128
BLOCK = 2048  # of a strided row


@triton.jit
def with_four(maximum, total, a, b, c, d):
    """A maximum and a sum of exponentials against it a row of tiles, with four tiles more."""
    larger = tl.maximum(
        tl.maximum(maximum, tl.maximum(tl.max(a, axis=1), tl.max(b, axis=1))),
        tl.maximum(tl.max(c, axis=1), tl.max(d, axis=1)),
    )
    shift = tl.where(larger == float("-inf"), 0.0, larger)  # -inf - (-inf) would be NaN
    against = shift[:, None]
    sums = (tl.exp(a - against) + tl.exp(b - against)) + (tl.exp(c - against) + tl.exp(d - against))
    return larger, total * tl.exp(maximum - shift) + tl.sum(sums, axis=1)


@triton.jit
def cross_entropy_vectors(x, target, y, row_stride, V, LANES: tl.constexpr, THREADS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    start = row * row_stride
    wanted = tl.load(target + row)
    aligned = tl.multiple_of((start + LANES - 1) // LANES * LANES, LANES)
    TILE: tl.constexpr = THREADS * LANES
    places = tl.arange(0, THREADS)[:, None] * LANES + tl.arange(0, LANES)[None, :]
    low = float("-inf")
    maximum = tl.full((THREADS,), low, tl.float32)
    total = tl.zeros((THREADS,), tl.float32)
    turns = tl.maximum(start + V - aligned, 0) // (4 * TILE)
    at = x + aligned + places
    for _ in range(turns):
        a = tl.load(at).to(tl.float32)
        b = tl.load(at + TILE).to(tl.float32)
        c = tl.load(at + 2 * TILE).to(tl.float32)
        d = tl.load(at + 3 * TILE).to(tl.float32)
        maximum, total = with_four(maximum, total, a, b, c, d)
        at += 4 * TILE
    left = start + V - aligned - turns * (4 * TILE)
    a = tl.load(at, mask=places < left, other=low).to(tl.float32)
    b = tl.load(at + TILE, mask=places < left - TILE, other=low).to(tl.float32)
    c = tl.load(at + 2 * TILE, mask=places < left - 2 * TILE, other=low).to(tl.float32)
    d = tl.load(at + 3 * TILE, mask=places < left - 3 * TILE, other=low).to(tl.float32)
    maximum, total = with_four(maximum, total, a, b, c, d)
    before = tl.minimum(aligned - start, V)
    columns = tl.arange(0, THREADS)
    e = tl.load(x + start + columns, mask=columns < before, other=low).to(tl.float32)
    row_maximum = tl.max(tl.maximum(maximum, e), axis=0)
    parts = total * tl.exp(maximum - row_maximum) + tl.exp(e - row_maximum)
    logit = tl.load(x + start + wanted).to(tl.float32)
    loss = row_maximum - logit + tl.log(tl.sum(parts, axis=0))
    tl.store(y + row, loss.to(y.dtype.element_ty))


@triton.jit
def cross_entropy_strided(x, target, y, row_stride, column_stride, V, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    start = x + row * row_stride
    logit = tl.load(start + tl.load(target + row) * column_stride).to(tl.float32)
    maximum = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, V, BLOCK):
        columns = first + tl.arange(0, BLOCK)
        places = start + columns.to(tl.int64) * column_stride
        a = tl.load(places, mask=columns < V, other=float("-inf")).to(tl.float32)
        larger = tl.maximum(maximum, a)
        shift = tl.where(larger == float("-inf"), 0.0, larger)
        total = total * tl.exp(maximum - shift) + tl.exp(a - shift)
        maximum = larger
    row_maximum = tl.max(maximum, axis=0)
    row_total = tl.sum(total * tl.exp(maximum - row_maximum), axis=0)
    tl.store(y + row, (row_maximum - logit + tl.log(row_total)).to(y.dtype.element_ty))


def prepare(x, target):
    rows, length = x.shape
    lanes = 16 // x.element_size()

    def run():
        y = torch.empty((rows,), dtype=x.dtype, device=x.device)
        if rows and x.stride(1) == 1:
            cross_entropy_vectors[(rows,)](
                x, target, y, x.stride(0), length, LANES=lanes, THREADS=THREADS, num_warps=THREADS // 32
            )
        elif rows:
            cross_entropy_strided[(rows,)](x, target, y, *x.stride(), length, BLOCK=BLOCK, num_warps=8)
        return y

    run()
    return run
