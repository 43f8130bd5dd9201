"""One program a block of elements, which goes through every fold in registers.

Bound by one launch and the latency of its loads: N elements are read and written once; the points come from the L1, and
no load waits for the value that is folded. Prediction: the device time of cuda_persistent, and a call time above it by
what Triton's launcher costs.

Reached on nvidia-h200 at 968ac8c4: 1.79 µs for float32 N=65536,folds=16, 293 GB/s, 6.8 % of the memory ceiling, 37.4
times as fast as torch_eager (unstable).
"""

import torch
import triton
import triton.language as tl

BLOCK = 512  # 4 elements a thread, and programs for most multiprocessors from 64 Ki elements on
WARPS = 4


@triton.jit
def many_small_block(x_ptr, b_ptr, y_ptr, N, folds, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < N
    value = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    for fold in range(folds):
        value = tl.abs(value - tl.load(b_ptr + fold))
    tl.store(y_ptr + offsets, value.to(y_ptr.dtype.element_ty), mask=inside)


def prepare(x, b):
    points = b.contiguous()
    folds = points.numel()

    def run():
        source = x.contiguous()
        y = torch.empty_like(source)
        size = y.numel()
        if size:
            many_small_block[(triton.cdiv(size, BLOCK),)](source, points, y, size, folds, BLOCK=BLOCK, num_warps=WARPS)
        return y

    return run
