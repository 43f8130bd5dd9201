"""CuPy's reduce-scatter by NCCL.

Bound by the link: each rank sends W-1 pieces. Prediction: the device time of eager with less of the host's, since
nothing keeps track of streams between.

Reached on nvidia-h200 at 968ac8c4: 34.5 µs for float32 W=1,N=16777216, 3.89 TB/s, 91 % of the memory ceiling, 1.01
times as fast as torch_eager (unstable).
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
