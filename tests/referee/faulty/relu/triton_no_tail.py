"""Whole vectors of four and no tail: 12345 elements are one too many."""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def no_tail(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < N // 4 * 4
    x = tl.load(x_ptr + offsets, mask=inside).to(tl.float32)
    tl.store(y_ptr + offsets, tl.where(x < 0, 0.0, x).to(y_ptr.dtype.element_ty), mask=inside)


def prepare(x):
    def run():
        source = x.contiguous()
        y = torch.empty_like(source)
        if y.numel():
            no_tail[(triton.cdiv(y.numel(), BLOCK),)](source, y, y.numel(), BLOCK=BLOCK)
        return y

    return run
