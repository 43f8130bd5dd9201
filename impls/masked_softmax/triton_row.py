"""One program a row, the row in registers: the mask turns elements into -inf on the way in.

Memory-bound: M·N elements and as many bytes of mask read, M·N elements written. A strided input is read as it lies.
Rows beyond 32768 elements are walked over twice, once for an online maximum and sum and once to divide. Prediction:
level with cuda_block. Two multiprocessors a row, as in cuda_pair, would be num_ctas=2, which Triton 3.6 cannot compile
for a reduction (the pass that plans the CTAs fails), and 3.9 can.

Float32 rows of 32768 reach 84.3 % of the ceiling, 3.7 points short of 88 %. The L2 cache bounds them, at 80 % of its
peak, with DRAM at 72 % and multiprocessors at 26 %. A block of 1024 threads, 64 registers each, fits once on a
multiprocessor (48 % occupancy), so that nothing is read there while its row is reduced; nothing spills. A warp waits
8.47 cycles an instruction for memory, 5.22 for the queue of accesses, 3.69 for a barrier.
profile: results/nvidia-h200/profiles/masked_softmax/triton_row/float32-M=2048,N=32768-968ac8c4-ncu.md

Reached on nvidia-h200 at 968ac8c4: 137 µs for float32 M=16384,N=4096, 4.39 TB/s, 102 % of the memory ceiling, 4.10
times as fast as torch_eager.
"""

import torch
import triton
import triton.language as tl

from .._triton.rows import block_for, fits, warps_for


@triton.jit
def load_masked(x, mask, columns, column_stride, N):
    """Columns of a row as float32; what is masked or beyond the row is -inf."""
    inside = columns < N
    values = tl.load(x + columns.to(tl.int64) * column_stride, mask=inside, other=float("-inf")).to(tl.float32)
    return tl.where(tl.load(mask + columns, mask=inside, other=1) != 0, float("-inf"), values)


@triton.jit
def masked_softmax_row(x, mask, y, row_stride, column_stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    values = load_masked(x + row * row_stride, mask + row * N, columns, column_stride, N)
    exponentials = tl.exp(values - tl.max(values, axis=0))
    result = exponentials / tl.sum(exponentials, axis=0)
    tl.store(y + row * N + columns, result.to(y.dtype.element_ty), mask=columns < N)


@triton.jit
def masked_softmax_long_row(x, mask, y, row_stride, column_stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    maximum = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, N, BLOCK):
        values = load_masked(x + row * row_stride, mask + row * N, first + offsets, column_stride, N)
        larger = tl.maximum(maximum, values)
        shift = tl.where(larger == float("-inf"), 0.0, larger)  # -inf - (-inf) would be NaN
        total = total * tl.exp(maximum - shift) + tl.exp(values - shift)
        maximum = larger
    row_maximum = tl.max(maximum, axis=0)
    row_total = tl.sum(total * tl.exp(maximum - row_maximum), axis=0)
    for first in range(0, N, BLOCK):
        columns = first + offsets
        values = load_masked(x + row * row_stride, mask + row * N, columns, column_stride, N)
        result = tl.exp(values - row_maximum) / row_total
        tl.store(y + row * N + columns, result.to(y.dtype.element_ty), mask=columns < N)


def prepare(x, mask):
    rows, length = x.shape
    kernel = masked_softmax_row if fits(length) else masked_softmax_long_row
    block = block_for(length)

    def run():
        y = torch.empty((rows, length), dtype=x.dtype, device=x.device)
        if y.numel():
            kernel[(rows,)](x, mask, y, *x.stride(), length, BLOCK=block, num_warps=warps_for(block))
        return y

    run()
    return run
