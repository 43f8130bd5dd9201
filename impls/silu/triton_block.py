"""One program a block of consecutive elements, two 16-byte vectors a thread.

Bound by memory: N elements read, N written. Prediction: level with cuda_vec.

Reached on nvidia-h200 at 968ac8c4: 124 µs for float16 N=134217728, 4.32 TB/s, 101 % of the memory ceiling, 1.10 times
as fast as torch_eager.
"""

import triton
import triton.language as tl

from .._triton.elementwise import launch


@triton.jit
def silu_block(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < N
    x = tl.load(x_ptr + offsets, mask=inside).to(tl.float32)
    y = x * tl.sigmoid(x)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def prepare(x):
    def run():
        return launch(silu_block, x)

    return run
