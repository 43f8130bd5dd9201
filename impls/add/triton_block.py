"""One program a block of consecutive elements, two 16-byte vectors of each input a thread.

Bound by memory: 2·N elements read, N written. Prediction: level with cuda_vec.

Reached on nvidia-h200 at 968ac8c4: 182 µs for float16 N=134217728, 4.43 TB/s, 101 % of the memory ceiling, 0.995 times
as fast as torch_eager.
"""

import triton
import triton.language as tl

from .._triton.elementwise import launch


@triton.jit
def add_block(a_ptr, b_ptr, y_ptr, N, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < N
    a = tl.load(a_ptr + offsets, mask=inside).to(tl.float32)
    b = tl.load(b_ptr + offsets, mask=inside).to(tl.float32)
    tl.store(y_ptr + offsets, (a + b).to(y_ptr.dtype.element_ty), mask=inside)


def prepare(a, b):
    def run():
        return launch(add_block, a, b)

    return run
