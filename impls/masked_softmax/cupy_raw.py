"""A block a row in CUDA C++ compiled at run time by CuPy: maximum, sum and division each read the row again.

Memory-bound: the second and third read find row and mask in L1 or L2. Prediction: behind cuda_block, since single
elements in flight do not fill the memory system.
"""

import cupy

from .._cupy.dtypes import unsupported
from .._cupy.rows import launch_rows, row_kernel

__all__ = ["prepare", "unsupported"]

SOURCE = r"""
template <typename T>
__global__ void masked_softmax_rows(const T* __restrict__ x, const unsigned char* __restrict__ mask,
                                    T* __restrict__ y, long long length) {
  x += blockIdx.x * length;
  mask += blockIdx.x * length;
  y += blockIdx.x * length;
  float maximum = NEGATIVE_INFINITY;
  for (long long i = threadIdx.x; i < length; i += blockDim.x) {
    if (!mask[i]) maximum = fmaxf(maximum, as_float(x[i]));
  }
  maximum = block_max(maximum);
  float sum = 0.0f;
  for (long long i = threadIdx.x; i < length; i += blockDim.x) {
    if (!mask[i]) sum += __expf(as_float(x[i]) - maximum);
  }
  const float scale = 1.0f / block_sum(sum);
  for (long long i = threadIdx.x; i < length; i += blockDim.x) {
    put(y + i, mask[i] ? 0.0f : __expf(as_float(x[i]) - maximum) * scale);
  }
}
"""


def prepare(x, mask):
    kernel = row_kernel(SOURCE, "masked_softmax_rows", x.dtype)

    def run():
        y = cupy.empty(x.shape, dtype=x.dtype)
        return launch_rows(kernel, y, (cupy.ascontiguousarray(x), mask), x.shape[1])

    return run
