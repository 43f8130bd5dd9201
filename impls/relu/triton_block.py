"""One program a block of consecutive elements, two 16-byte vectors a thread.

Bound by memory: N elements read, N written. Triton turns a contiguous, aligned block into 16-byte accesses by itself.
Prediction: level with the hand-vectorised CUDA kernels on large tensors.

Reached on nvidia-h200 at 968ac8c4: 249 µs for float32 N=134217728, 4.30 TB/s, 101 % of the memory ceiling, 1.00 times
as fast as torch_eager.
"""

import torch
import triton
import triton.language as tl

WARPS = 4
BLOCK_BYTES = WARPS * 32 * 2 * 16  # two vectors in flight a thread hide more latency than one


@triton.jit
def relu_block(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < N
    x = tl.load(x_ptr + offsets, mask=inside).to(tl.float32)  # exact; Triton's interpreter cannot compare bfloat16
    # A comparison with NaN is false, so NaN passes; tl.maximum would drop it.
    y = tl.where(x < 0, 0.0, x)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def prepare(x):
    block = BLOCK_BYTES // x.element_size()

    def run():
        source = x.contiguous()
        y = torch.empty_like(source)
        if y.numel():
            relu_block[(triton.cdiv(y.numel(), block),)](source, y, y.numel(), BLOCK=block, num_warps=WARPS)
        return y

    return run
