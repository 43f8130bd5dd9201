"""Honest: one program a block."""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def twice(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < N) * 2, mask=at < N)


def prepare(x):
    def run():
        source = x.contiguous()
        y = torch.empty_like(source)
        if y.numel():
            twice[(triton.cdiv(y.numel(), BLOCK),)](source, y, y.numel(), BLOCK=BLOCK)
        return y

    return run
