"""A block a row in CuPy's run-time compiled CUDA: sums and maxima over a block, and a launcher.

A kernel is a template ``name<T>(inputs..., y, long long length)`` that handles row ``blockIdx.x``. Loads are single
elements; a second read of a row finds it in L2.
"""

import cupy
import numpy

from .dtypes import C_TYPES, CONVERSIONS

MOST_THREADS = 512
ELEMENTS_PER_THREAD = 8

BLOCK_REDUCTIONS = r"""
// The sum of one value a thread, in every thread; safe to call again at once.
__device__ inline float block_sum(float value) {
  __shared__ float scratch[32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  float total = 0.0f;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) total += scratch[warp];
  return total;
}

#define NEGATIVE_INFINITY __int_as_float(0xff800000)  // the run-time compiler has no INFINITY

// The largest of one value a thread, in every thread; safe to call again at once.
__device__ inline float block_max(float value) {
  __shared__ float scratch[32];
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  for (int warp = 0; warp < blockDim.x / 32; ++warp) value = fmaxf(value, scratch[warp]);
  return value;
}
"""


def row_kernel(source, name, dtype):
    """The kernel ``name<T>`` of a source that may use ``as_float``, ``put``, ``block_sum`` and ``block_max``."""
    expression = f"{name}<{C_TYPES[dtype.name]}>"
    code = CONVERSIONS + BLOCK_REDUCTIONS + source
    module = cupy.RawModule(code=code, options=("-std=c++17",), name_expressions=(expression,))
    return module.get_function(expression)


def threads_for(length):
    """Threads a row: whole warps, ELEMENTS_PER_THREAD elements each while that is no more than MOST_THREADS."""
    warps = -(-length // (32 * ELEMENTS_PER_THREAD))
    return min(max(32 * warps, 32), MOST_THREADS)


def launch_rows(kernel, y, inputs, length):
    """Launch one block for each row of ``inputs[0]`` unless there is nothing to write."""
    rows = inputs[0].shape[0]
    if y.size:
        kernel((rows,), (threads_for(length),), (*inputs, y, numpy.int64(length)))
    return y
