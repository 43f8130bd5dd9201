"""A block a row in CUDA C++ compiled at run time by CuPy, four 16-byte vectors in flight a thread.

Memory-bound: M·N elements read. Prediction: level with cuda_block where rows are many, far behind where they are few:
a row is one block's.

Reached on nvidia-h200 at a6dbf2ac: 64.8 µs for float32 M=65536,N=1024, 4.14 TB/s, 90 % of the memory ceiling, 1.11
times as fast as torch_eager.
"""

import cupy

from .._cupy.dtypes import unsupported
from .._cupy.packed_rows import streamed_rows

__all__ = ["prepare", "unsupported"]

SOURCE = r"""
template <typename T>
__global__ void __launch_bounds__(256) row_sum_rows(const T* __restrict__ x, T* __restrict__ y, long long length) {
  float sum = 0.0f;
  stream_row(x + blockIdx.x * length, length, [&](const auto& some) {
    for (int i = 0; i < some.kLanes; ++i) sum += some.lanes[i];
  });
  sum = block_sum(sum);
  if (threadIdx.x == 0) put(y + blockIdx.x, sum);
}
"""


def prepare(x):
    launch = streamed_rows(SOURCE, "row_sum_rows", x)

    def run():
        return launch(cupy.empty(x.shape[:1], dtype=x.dtype), (cupy.ascontiguousarray(x),))

    return run
