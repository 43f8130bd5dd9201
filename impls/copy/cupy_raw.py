"""CUDA C++ compiled at run time by CuPy, two 16-byte vectors a thread.

Bound by memory: N elements read, N written. Prediction: the device time of cuda_vec, with CuPy's launch in front.

Reached on nvidia-h200 at 968ac8c4: 249 µs for float32 N=134217728, 4.31 TB/s, 101 % of the memory ceiling, 1.01 times
as fast as torch_eager.
"""

from .._cupy.dtypes import unsupported
from .._cupy.elementwise import mapper

__all__ = ["prepare", "unsupported"]


def prepare(x):
    return mapper("x", x=x)
