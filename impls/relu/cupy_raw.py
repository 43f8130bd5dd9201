"""CUDA C++ compiled at run time by CuPy, one element a thread.

Bound by memory: N elements read, N written, in coalesced scalar accesses. Prediction: the device time of
cuda_branchfree, with CuPy's launch in front of it.

Reached on nvidia-h200 at 968ac8c4: 428 µs for float32 N=134217728, 2.51 TB/s, 59 % of the memory ceiling, 0.584 times
as fast as torch_eager.
"""

import cupy
import numpy

BLOCK = 256

SOURCE = r"""
#include <cuda_fp16.h>

template <typename T>
__global__ void relu(const T* __restrict__ x, T* __restrict__ y, long long size) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < size) {
    const float value = x[i];
    // A comparison with NaN is false, so NaN passes; fmaxf would drop it.
    y[i] = value < 0.0f ? T(0.0f) : x[i];
  }
}
"""

C_TYPES = {"float32": "float", "float16": "__half"}


def unsupported(dtype, **shape):
    if dtype not in C_TYPES:
        return f"CuPy has no {dtype} arrays of its own (from 14 on, only through the package ml_dtypes)"
    return None


def prepare(x):
    name = f"relu<{C_TYPES[x.dtype.name]}>"
    kernel = cupy.RawModule(code=SOURCE, options=("-std=c++17",), name_expressions=(name,)).get_function(name)

    def run():
        source = cupy.ascontiguousarray(x)
        y = cupy.empty_like(source)
        if y.size:
            kernel((-(-y.size // BLOCK),), (BLOCK,), (source, y, numpy.int64(y.size)))
        return y

    return run
