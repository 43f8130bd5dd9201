"""CuPy's reduce-scatter by NCCL.

Bound by the link: each rank sends W-1 pieces. Prediction: the device time of eager with less of the host's, since
nothing keeps track of streams between.
"""

import cupy
from cupy.cuda import nccl

from .._cupy.ranks import communicator, kind_of, stream, unsupported

__all__ = ["prepare", "unsupported"]


def prepare(x):
    group, kind = communicator(), kind_of(x)
    size = x.size // group.size()

    def run():
        source = cupy.ascontiguousarray(x)
        y = cupy.empty(size, dtype=source.dtype)
        group.reduceScatter(source.data.ptr, y.data.ptr, size, kind, nccl.NCCL_SUM, stream())
        return y

    return run
