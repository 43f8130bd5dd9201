"""CUDA C++ compiled at run time by CuPy: scale and ReLU in one pass, the scale a constant of the source.

Bound by memory: N elements read, N written, two 16-byte vectors a thread. Prediction: the device time of cuda_fused,
with CuPy's launch in front.

Reached on nvidia-h200 at 968ac8c4: 124 µs for float16 N=134217728, 4.33 TB/s, 101 % of the memory ceiling, 2.09 times
as fast as torch_eager.
"""

from .._cupy.dtypes import unsupported
from .._cupy.elementwise import mapper

__all__ = ["prepare", "unsupported"]


def prepare(x, scale):
    factor = float(scale).hex()  # a hexadecimal literal is exact
    # A comparison with NaN is false, so NaN passes; fmaxf would drop it.
    return mapper(f"x * float({factor}) < 0.0f ? 0.0f : x * float({factor})", x=x)
