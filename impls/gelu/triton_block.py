"""One program a block of consecutive elements, erfc by a rational approximation.

Bound by memory: N elements read, N written, two 16-byte vectors a thread. The approximation has the form of Abramowitz
and Stegun, Handbook of Mathematical Functions, 7.1.26, with coefficients fitted to the relative error of erfc, which
tl.erf cannot give: 1 + erf(x/√2) cancels where x is negative. Prediction: level with cuda_rational.

Reached on nvidia-h200 at 968ac8c4: 123 µs for float16 N=134217728, 4.37 TB/s, 102 % of the memory ceiling, 1.40 times
as fast as torch_eager.
"""

import triton
import triton.language as tl

from .._triton.activation import gelu
from .._triton.elementwise import launch


@triton.jit
def gelu_block(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < N
    x = tl.load(x_ptr + offsets, mask=inside).to(tl.float32)
    y = gelu(x)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def prepare(x):
    def run():
        return launch(gelu_block, x)

    return run
