"""One program a block of consecutive elements, two 16-byte vectors a thread.

Bound by memory: N elements read, N written. Prediction: level with cuda_vec.

Reached on nvidia-h200 at 968ac8c4: 249 µs for float32 N=134217728, 4.30 TB/s, 101 % of the memory ceiling, 1.01 times
as fast as torch_eager.
"""

import triton
import triton.language as tl

from .._triton.elementwise import launch


@triton.jit
def copy_block(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < N
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=inside), mask=inside)


def prepare(x):
    def run():
        return launch(copy_block, x)

    return run
