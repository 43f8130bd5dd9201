"""One program a row, the row in registers between its sum of squares and its output.

Memory-bound: 2·M·N elements, and the weight from L2. A strided input is read as it lies. Rows beyond 32768 elements are
walked over twice in chunks, the second time mostly from L2. Prediction: level with cuda_block.

Reached on nvidia-h200 at 968ac8c4: 129 µs for float32 M=2048,N=32768, 4.15 TB/s, 97 % of the memory ceiling, 1.51 times
as fast as torch_eager.
"""

import torch
import triton
import triton.language as tl

from .._triton.rows import block_for, fits, warps_for

EPSILON = 1e-6


@triton.jit
def rms_norm_row(x, weight, y, row_stride, column_stride, N, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < N
    values = tl.load(x + row * row_stride + columns * column_stride, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, axis=0) / N + epsilon)
    w = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * N + columns, (values * scale * w).to(y.dtype.element_ty), mask=inside)


@triton.jit
def rms_norm_long_row(x, weight, y, row_stride, column_stride, N, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    start = x + row * row_stride
    squares = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, N, BLOCK):
        columns = first + offsets
        values = tl.load(start + columns.to(tl.int64) * column_stride, mask=columns < N, other=0.0).to(tl.float32)
        squares += values * values
    scale = tl.rsqrt(tl.sum(squares, axis=0) / N + epsilon)
    for first in range(0, N, BLOCK):
        columns = first + offsets
        inside = columns < N
        values = tl.load(start + columns.to(tl.int64) * column_stride, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + row * N + columns, (values * scale * w).to(y.dtype.element_ty), mask=inside)


def prepare(x, weight):
    rows, length = x.shape
    kernel = rms_norm_row if fits(length) else rms_norm_long_row
    block = block_for(length)

    def run():
        y = torch.empty((rows, length), dtype=x.dtype, device=x.device)
        if y.numel():
            kernel[(rows,)](x, weight, y, *x.stride(), length, EPSILON, BLOCK=block, num_warps=warps_for(block))
        return y

    run()
    return run
