"""CUDA C++ compiled at run time by CuPy, two 16-byte vectors of each input a thread.

Bound by memory: 2·N elements read, N written. Prediction: the device time of cuda_vec, with CuPy's launch in front.

Reached on nvidia-h200 at 968ac8c4: 181 µs for float16 N=134217728, 4.44 TB/s, 101 % of the memory ceiling, 0.996 times
as fast as torch_eager.
"""

from .._cupy.dtypes import unsupported
from .._cupy.elementwise import mapper

__all__ = ["prepare", "unsupported"]


def prepare(a, b):
    return mapper("a + b", a=a, b=b)
