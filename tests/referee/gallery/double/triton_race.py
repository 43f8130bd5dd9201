"""Many programs add to the same elements without telling each other."""

import torch
import triton
import triton.language as tl

BLOCK, PROGRAMS = 128, 64


@triton.jit
def add_share(x_ptr, y_ptr, N, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    share = tl.load(x_ptr + at, mask=at < N) * (2.0 / PROGRAMS)
    tl.store(y_ptr + at, tl.load(y_ptr + at, mask=at < N) + share, mask=at < N)


def prepare(x):
    def run():
        y = torch.zeros_like(x)
        add_share[(triton.cdiv(x.numel(), BLOCK), PROGRAMS)](x, y, x.numel(), BLOCK=BLOCK, PROGRAMS=PROGRAMS)
        return y

    return run
