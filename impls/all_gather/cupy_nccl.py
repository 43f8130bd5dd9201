"""CuPy's all-gather by NCCL.

Bound by the link: each rank's vector is passed on W-1 times. Prediction: the device time of eager with less of the
host's, since nothing keeps track of streams between.

Reached on nvidia-h200 at 968ac8c4: 34.6 µs for float32 W=1,N=16777216, 3.88 TB/s, 91 % of the memory ceiling, 1.00
times as fast as torch_eager (unstable).
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
