"""Triton's exp of float32, which is the hardware's approximate power of two."""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def fast_exp(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.exp(tl.load(x_ptr + at, mask=at < N)), mask=at < N)


def prepare(x):
    def run():
        y = torch.empty_like(x)
        if y.numel():
            fast_exp[(triton.cdiv(y.numel(), BLOCK),)](x, y, y.numel(), BLOCK=BLOCK)
        return y

    return run
