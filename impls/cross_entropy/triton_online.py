"""One program a row and one read of the logits: a maximum and a sum in every lane, merged once after the loop.

Memory-bound: M·V logits read, M losses written. Four blocks are loaded in each turn of the loop, so that the sums are
rescaled, at the cost of an exponential a lane, once for four logits. A strided input is read as it lies. Prediction:
level with cuda_online where rows are aligned, behind it where they are not (V = 50257), since Triton then loads single
elements.
"""

import torch
import triton
import triton.language as tl

BLOCK = 2048
WARPS = 8


@triton.jit
def cross_entropy_online(x, target, y, row_stride, column_stride, V, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    start = x + row * row_stride
    logit = tl.load(start + tl.load(target + row) * column_stride).to(tl.float32)
    maximum = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, V, 4 * BLOCK):
        columns = first + tl.arange(0, BLOCK)
        places = start + columns.to(tl.int64) * column_stride
        step = BLOCK * column_stride
        low = float("-inf")
        a = tl.load(places, mask=columns < V, other=low).to(tl.float32)
        b = tl.load(places + step, mask=columns < V - BLOCK, other=low).to(tl.float32)
        c = tl.load(places + 2 * step, mask=columns < V - 2 * BLOCK, other=low).to(tl.float32)
        d = tl.load(places + 3 * step, mask=columns < V - 3 * BLOCK, other=low).to(tl.float32)
        larger = tl.maximum(maximum, tl.maximum(tl.maximum(a, b), tl.maximum(c, d)))
        shift = tl.where(larger == low, 0.0, larger)  # -inf - (-inf) would be NaN
        sums = (tl.exp(a - shift) + tl.exp(b - shift)) + (tl.exp(c - shift) + tl.exp(d - shift))
        total = total * tl.exp(maximum - shift) + sums
        maximum = larger
    row_maximum = tl.max(maximum, axis=0)
    row_total = tl.sum(total * tl.exp(maximum - row_maximum), axis=0)
    tl.store(y + row, (row_maximum - logit + tl.log(row_total)).to(y.dtype.element_ty))


def prepare(x, target):
    rows, length = x.shape

    def run():
        y = torch.empty((rows,), dtype=x.dtype, device=x.device)
        if rows:
            cross_entropy_online[(rows,)](x, target, y, *x.stride(), length, BLOCK=BLOCK, num_warps=WARPS)
        return y

    run()
    return run
