"""One program a block of consecutive elements, both operations in one pass.

Bound by memory: 3·N elements read, N written, two 16-byte vectors of each input a thread. Prediction: level with
cuda_vec.

Reached on nvidia-h200 at 968ac8c4: 240 µs for float16 N=134217728, 4.48 TB/s, 101 % of the memory ceiling, 1.52 times
as fast as torch_eager.
"""

import triton
import triton.language as tl

from .._triton.elementwise import launch


@triton.jit
def axpby_block(a_ptr, b_ptr, c_ptr, y_ptr, N, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < N
    a = tl.load(a_ptr + offsets, mask=inside).to(tl.float32)
    b = tl.load(b_ptr + offsets, mask=inside).to(tl.float32)
    c = tl.load(c_ptr + offsets, mask=inside).to(tl.float32)
    y = (a + b) * c
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def prepare(a, b, c):
    def run():
        return launch(axpby_block, a, b, c)

    return run
