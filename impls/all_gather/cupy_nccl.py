"""CuPy's all-gather by NCCL.

Bound by the link: each rank's vector is passed on W-1 times. Prediction: the device time of eager with less of the
host's, since nothing keeps track of streams between.
"""

import cupy

from .._cupy.ranks import communicator, kind_of, stream, unsupported

__all__ = ["prepare", "unsupported"]


def prepare(x):
    group, kind = communicator(), kind_of(x)
    world = group.size()

    def run():
        source = cupy.ascontiguousarray(x)
        y = cupy.empty(world * source.size, dtype=source.dtype)
        group.allGather(source.data.ptr, y.data.ptr, source.size, kind, stream())
        return y

    return run
