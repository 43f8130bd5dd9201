"""A block a row in CUDA C++ compiled at run time by CuPy: an online maximum and sum, by single elements.

Memory-bound: M·V logits read once. Prediction: behind cuda_online, since 4 bytes in flight a thread and load do not
fill the memory system, and every element costs a second exponential to rescale the sum.
"""

import cupy

from .._cupy.dtypes import unsupported
from .._cupy.rows import launch_rows, row_kernel

__all__ = ["prepare", "unsupported"]

SOURCE = r"""
template <typename T>
__global__ void cross_entropy_rows(const T* __restrict__ x, const long long* __restrict__ target, T* __restrict__ y,
                                   long long length) {
  x += blockIdx.x * length;
  float maximum = NEGATIVE_INFINITY, sum = 0.0f;
  for (long long i = threadIdx.x; i < length; i += blockDim.x) {
    const float value = as_float(x[i]), larger = fmaxf(maximum, value);
    if (larger != NEGATIVE_INFINITY) sum = sum * __expf(maximum - larger) + __expf(value - larger);
    maximum = larger;
  }
  const float whole = block_max(maximum);
  sum = block_sum(maximum == NEGATIVE_INFINITY ? 0.0f : sum * __expf(maximum - whole));
  if (threadIdx.x == 0) put(y + blockIdx.x, whole - as_float(x[target[blockIdx.x]]) + logf(sum));
}
"""


def prepare(x, target):
    kernel = row_kernel(SOURCE, "cross_entropy_rows", x.dtype)

    def run():
        y = cupy.empty(x.shape[:1], dtype=x.dtype)
        return launch_rows(kernel, y, (cupy.ascontiguousarray(x), target), x.shape[1])

    return run
