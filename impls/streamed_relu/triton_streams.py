"""Pieces copied on two streams, each rectified in place by a Triton kernel while the next one is copied.

Bound by the link: N elements cross it, and all ReLUs but the last piece's are hidden behind copies. Prediction: level
with torch_streams; a launch of Triton's costs the host no more than an ATen kernel.

Reached on nvidia-h200 at 968ac8c4: 1.32 ms for float32 N=16777216, 101 GB/s, 91 % of the link ceiling, 0.958 times as
fast as torch_eager (unstable).
"""

import torch
import triton
import triton.language as tl

from .lanes import destination, make_lanes, over_pieces
from .pieces import pieces

WARPS = 8
BLOCK_BYTES = WARPS * 32 * 4 * 16  # four 16-byte vectors a thread


@triton.jit
def streamed_relu_block(y_ptr, N, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < N
    y = tl.load(y_ptr + offsets, mask=inside).to(tl.float32)  # exact; Triton's interpreter cannot compare bfloat16
    # A comparison with NaN is false, so NaN passes; tl.maximum would drop it.
    tl.store(y_ptr + offsets, tl.where(y < 0, 0.0, y).to(y_ptr.dtype.element_ty), mask=inside)


def prepare(x):
    device, lanes = destination(x), make_lanes(x)
    bounds = pieces(x.numel(), x.element_size())
    block = BLOCK_BYTES // x.element_size()

    def run():
        y = torch.empty(x.shape, dtype=x.dtype, device=device)

        def work(first, end):
            piece = y[first:end].copy_(x[first:end], non_blocking=True)
            size = end - first
            streamed_relu_block[(triton.cdiv(size, block),)](piece, size, BLOCK=block, num_warps=WARPS)

        over_pieces(work, bounds, lanes)
        return y

    return run
