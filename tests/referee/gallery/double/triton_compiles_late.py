"""Launches a variant of its kernel that is not compiled yet, in the first timed call after it was prepared."""

import torch
import triton
import triton.language as tl

from .._frames.inside import inside


@triton.jit
def twice(x, y, n, ODD: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + offsets, 2 * tl.load(x + offsets, mask=offsets < n), mask=offsets < n)


variants = [0]


def prepare(x):
    n, done = x.numel(), []

    def run():
        y = torch.empty_like(x)
        if inside("_issue") and not done:
            done.append(1)
            variants[0] += 1
        twice[(triton.cdiv(n, 1024),)](x, y, n, ODD=variants[0], BLOCK=1024)
        return y

    return run
