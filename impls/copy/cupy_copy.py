"""ndarray.copy of CuPy: a contiguous array is copied by the driver, a strided one by a generated kernel.

Bound by memory: N elements read, N written. Prediction: the device time of torch_eager, which asks the driver too.
"""

from .._cupy.dtypes import unsupported

__all__ = ["prepare", "unsupported"]


def prepare(x):
    def run():
        return x.copy(order="C")

    return run
