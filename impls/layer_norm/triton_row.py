"""One program a row, the row in registers: mean, then the deviations' variance, from one read of x.

Memory-bound: 2·M·N elements, and weight and bias from L2. A strided input is read as it lies. Rows beyond 32768
elements are walked over three times in chunks, mostly from L2. Prediction: level with cuda_block. Two multiprocessors
a row, as in cuda_pair, would be num_ctas=2, which Triton 3.6 cannot compile for a reduction (the pass that plans the
CTAs fails), and 3.9 can.

Float32 rows of 4096 reach 100 % of the ceiling, rows of 32768 85.9 %: 2.1 points short of 88 %. The L2 cache bounds
these, at 85 % of its peak, with DRAM at 74 % and multiprocessors at 20 %. A block of 1024 threads, 64 registers each,
fits once on a multiprocessor (45 % occupancy), so that nothing is read there while its row is reduced; 16 bytes a
thread spill. A warp waits 17.0 cycles an instruction for memory, 4.20 for the queue of accesses, 3.15 for a barrier.
profile: results/nvidia-h200/profiles/layer_norm/triton_row/float32-M=2048,N=32768-968ac8c4-ncu.md

Reached on nvidia-h200 at 968ac8c4: 146 µs for float32 M=2048,N=32768, 3.67 TB/s, 86 % of the memory ceiling, 1.81 times
as fast as torch_eager.
"""

import torch
import triton
import triton.language as tl

from .._triton.rows import block_for, fits, warps_for

EPSILON = 1e-5


@triton.jit
def layer_norm_row(x, weight, bias, y, row_stride, column_stride, N, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < N
    values = tl.load(x + row * row_stride + columns * column_stride, mask=inside, other=0.0).to(tl.float32)
    deviations = tl.where(inside, values - tl.sum(values, axis=0) / N, 0.0)
    scale = tl.rsqrt(tl.sum(deviations * deviations, axis=0) / N + epsilon)
    w = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + columns, mask=inside, other=0.0).to(tl.float32)
    result = deviations * scale * w + b
    tl.store(y + row * N + columns, result.to(y.dtype.element_ty), mask=inside)


@triton.jit
def layer_norm_long_row(x, weight, bias, y, row_stride, column_stride, N, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    start = x + row * row_stride
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, N, BLOCK):
        columns = first + offsets
        total += tl.load(start + columns.to(tl.int64) * column_stride, mask=columns < N, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / N
    squares = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, N, BLOCK):
        columns = first + offsets
        inside = columns < N
        values = tl.load(start + columns.to(tl.int64) * column_stride, mask=inside, other=0.0).to(tl.float32)
        deviations = tl.where(inside, values - mean, 0.0)
        squares += deviations * deviations
    scale = tl.rsqrt(tl.sum(squares, axis=0) / N + epsilon)
    for first in range(0, N, BLOCK):
        columns = first + offsets
        inside = columns < N
        values = tl.load(start + columns.to(tl.int64) * column_stride, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(bias + columns, mask=inside, other=0.0).to(tl.float32)
        result = (values - mean) * scale * w + b
        tl.store(y + row * N + columns, result.to(y.dtype.element_ty), mask=inside)


def prepare(x, weight, bias):
    rows, length = x.shape
    kernel = layer_norm_row if fits(length) else layer_norm_long_row
    block = block_for(length)

    def run():
        y = torch.empty((rows, length), dtype=x.dtype, device=x.device)
        if y.numel():
            strides = x.stride()
            kernel[(rows,)](x, weight, bias, y, *strides, length, EPSILON, BLOCK=block, num_warps=warps_for(block))
        return y

    run()
    return run
