"""CuPy's all-reduce by NCCL from the input into a fresh output, without a copy before it.

Bound by the link: 2 (W-1)/W of the vector leaves each rank. Prediction: eager less the copy of the vector, and less of
the host's time, since nothing keeps track of streams between.

Reached on nvidia-h200 at 968ac8c4: 33.9 µs for float32 W=1,N=16777216, 3.96 TB/s, 93 % of the memory ceiling, 1.00
times as fast as torch_eager.
"""

import cupy
from cupy.cuda import nccl

from .._cupy.ranks import communicator, kind_of, stream, unsupported

__all__ = ["prepare", "unsupported"]


def prepare(x):
    group, kind = communicator(), kind_of(x)

    def run():
        source = cupy.ascontiguousarray(x)
        y = cupy.empty_like(source)
        group.allReduce(source.data.ptr, y.data.ptr, source.size, kind, nccl.NCCL_SUM, stream())
        return y

    return run
