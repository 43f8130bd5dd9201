"""A block a row in CUDA C++ that CuPy compiles at run time, an online softmax that reads x twice.

Memory-bound: 3·M·N·itemsize bytes at most; the second read finds a row of up to some hundred KiB in L2, so DRAM sees
little more than 2·M·N. Loads are single elements: simple, and fewer bytes in flight than 16-byte loads. Predicted:
between eager and cupy_array for long rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy

THREADS = 512

SOURCE = r"""
#include <cuda_fp16.h>

#define NEGATIVE_INFINITY __int_as_float(0xff800000)  // the run-time compiler has no INFINITY

__device__ inline float as_float(float value) { return value; }
__device__ inline float as_float(__half value) { return __half2float(value); }
__device__ inline void put(float* place, float value) { *place = value; }
__device__ inline void put(__half* place, float value) { *place = __float2half_rn(value); }

// A sum taken against `from`, seen from `to`; a part that is all -inf weighs nothing.
__device__ inline float rescale(float from, float to) { return from == NEGATIVE_INFINITY ? 0.0f : __expf(from - to); }

template <typename T>
__global__ void softmax_rows(const T* __restrict__ x, T* __restrict__ y, long long length) {
  __shared__ float maxima[32];
  __shared__ float sums[32];
  const T* row = x + blockIdx.x * length;
  float maximum = NEGATIVE_INFINITY;
  float sum = 0.0f;
  for (long long i = threadIdx.x; i < length; i += blockDim.x) {
    const float value = as_float(row[i]);
    const float larger = fmaxf(maximum, value);
    sum = sum * rescale(maximum, larger) + (value == NEGATIVE_INFINITY ? 0.0f : __expf(value - larger));
    maximum = larger;
  }
  for (int step = 16; step > 0; step /= 2) {
    const float other_maximum = __shfl_xor_sync(0xffffffffu, maximum, step);
    const float other_sum = __shfl_xor_sync(0xffffffffu, sum, step);
    const float larger = fmaxf(maximum, other_maximum);
    sum = sum * rescale(maximum, larger) + other_sum * rescale(other_maximum, larger);
    maximum = larger;
  }
  if (threadIdx.x % 32 == 0) {
    maxima[threadIdx.x / 32] = maximum;
    sums[threadIdx.x / 32] = sum;
  }
  __syncthreads();
  float row_maximum = NEGATIVE_INFINITY;
  float row_sum = 0.0f;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) row_maximum = fmaxf(row_maximum, maxima[warp]);
  for (int warp = 0; warp < blockDim.x / 32; ++warp) row_sum += sums[warp] * rescale(maxima[warp], row_maximum);
  for (long long i = threadIdx.x; i < length; i += blockDim.x) {
    put(y + blockIdx.x * length + i, __expf(as_float(row[i]) - row_maximum) / row_sum);
  }
}
"""

KERNELS = {"float32": "softmax_rows<float>", "float16": "softmax_rows<__half>"}


def unsupported(dtype: str, M: int, N: int, layout: str = "contiguous") -> str | None:
    if dtype == "bfloat16":
        return "CuPy has no bfloat16 arrays of its own (from 14 on, only through the package ml_dtypes)"
    return None


def prepare(x: Any) -> Callable[[], Any]:
    module = cupy.RawModule(code=SOURCE, options=("-std=c++17",), name_expressions=tuple(KERNELS.values()))
    kernel = module.get_function(KERNELS[str(x.dtype)])
    rows, length = x.shape
    threads = min(max(-(-length // 32) * 32, 32), THREADS)

    def run() -> Any:
        y = cupy.empty(x.shape, dtype=x.dtype)
        if y.size:
            kernel((rows,), (threads,), (cupy.ascontiguousarray(x), y, length))
        return y

    return run
