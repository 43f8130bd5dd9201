"""One program a row, the row in registers, so that x is read once and y written once.

Memory-bound: 2·M·N·itemsize bytes. A row is padded to the next power of two inside the program (masked lanes hold
-inf), with about 16 elements a thread: enough independent loads in flight, few enough registers for several programs a
multiprocessor. Rows beyond 32768 elements do not fit; a second kernel walks over them in chunks, once for an online
maximum and sum and once to divide: 3·M·N·itemsize bytes, minus what L2 still holds. Strides are arguments: a strided
input is read as it lies. Predicted: near the copy bandwidth from a few thousand elements a row on.

Reached on nvidia-h200 at 968ac8c4: 125 µs for float32 M=8192,N=8192, 4.28 TB/s, 100 % of the memory ceiling, 2.20 times
as fast as torch_eager.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl

LONGEST_ROW_IN_REGISTERS = 32768
CHUNK = 8192
ELEMENTS_PER_THREAD = 16


@triton.jit
def softmax_row_kernel(x, y, row_stride, column_stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < N
    values = tl.load(x + row * row_stride + columns * column_stride, mask=inside, other=float("-inf")).to(tl.float32)
    exponentials = tl.exp(values - tl.max(values, axis=0))
    result = exponentials / tl.sum(exponentials, axis=0)
    tl.store(y + row * N + columns, result.to(y.dtype.element_ty), mask=inside)


@triton.jit
def softmax_long_row_kernel(x, y, row_stride, column_stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    start = x + row * row_stride

    # A maximum and a sum in every lane: lanes are merged once, after the loop, not in every turn of it.
    maximum = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, N, BLOCK):
        columns = (first + offsets).to(tl.int64)
        values = tl.load(start + columns * column_stride, mask=columns < N, other=float("-inf")).to(tl.float32)
        larger = tl.maximum(maximum, values)
        shift = tl.where(larger == float("-inf"), 0.0, larger)  # -inf - (-inf) would be NaN
        total = total * tl.exp(maximum - shift) + tl.exp(values - shift)
        maximum = larger

    row_maximum = tl.max(maximum, axis=0)
    row_shift = tl.where(row_maximum == float("-inf"), 0.0, row_maximum)
    row_total = tl.sum(total * tl.exp(maximum - row_shift), axis=0)
    for first in range(0, N, BLOCK):
        columns = (first + offsets).to(tl.int64)
        inside = columns < N
        values = tl.load(start + columns * column_stride, mask=inside, other=float("-inf")).to(tl.float32)
        result = tl.exp(values - row_maximum) / row_total
        tl.store(y + row * N + columns, result.to(y.dtype.element_ty), mask=inside)


def warps_for(block: int) -> int:
    """Warps a program, for ELEMENTS_PER_THREAD elements a thread: 1 to 32, the hardware's limit."""
    return min(max(block // (32 * ELEMENTS_PER_THREAD), 1), 32)


def prepare(x: torch.Tensor) -> Callable[[], torch.Tensor]:
    rows, length = x.shape
    fits = length <= LONGEST_ROW_IN_REGISTERS
    kernel = softmax_row_kernel if fits else softmax_long_row_kernel
    block = triton.next_power_of_2(max(length, 1)) if fits else CHUNK
    warps = warps_for(block)

    def run() -> torch.Tensor:
        y = torch.empty((rows, length), dtype=x.dtype, device=x.device)
        if y.numel():
            kernel[(rows,)](x, y, x.stride(0), x.stride(1), length, BLOCK=block, num_warps=warps)
        return y

    run()
    return run
