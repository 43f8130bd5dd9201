"""A block a row in CUDA C++ compiled at run time by CuPy, by single elements.

Memory-bound: M·N elements read. Prediction: behind cuda_block, since 4 bytes in flight a thread and load do not fill
the memory system; far behind where rows are few.
"""

import cupy

from .._cupy.dtypes import unsupported
from .._cupy.rows import launch_rows, row_kernel

__all__ = ["prepare", "unsupported"]

SOURCE = r"""
template <typename T>
__global__ void row_sum_rows(const T* __restrict__ x, T* __restrict__ y, long long length) {
  x += blockIdx.x * length;
  float sum = 0.0f;
  for (long long i = threadIdx.x; i < length; i += blockDim.x) sum += as_float(x[i]);
  sum = block_sum(sum);
  if (threadIdx.x == 0) put(y + blockIdx.x, sum);
}
"""


def prepare(x):
    kernel = row_kernel(SOURCE, "row_sum_rows", x.dtype)

    def run():
        y = cupy.empty(x.shape[:1], dtype=x.dtype)
        return launch_rows(kernel, y, (cupy.ascontiguousarray(x),), x.shape[1])

    return run
