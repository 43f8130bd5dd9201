"""One kernel that CuPy compiles at run time, each thread taking an element through every fold in a register.

Bound by one launch and the latency of its loads: N elements are read and written once, the points by every thread from
the same cached line. Prediction: the device time of cuda_persistent, with CuPy's launch in front.

Reached on nvidia-h200 at 968ac8c4: 1.66 µs for float32 N=65536,folds=16, 315 GB/s, 7.4 % of the memory ceiling, 39.9
times as fast as torch_eager.
"""

import cupy
import numpy

from .._cupy.dtypes import C_TYPES, CONVERSIONS, unsupported

__all__ = ["prepare", "unsupported"]

BLOCK = 256

SOURCE = r"""
template <typename T>
__global__ void many_small(const T* __restrict__ x, const float* __restrict__ b, T* __restrict__ y, long long size,
                           int folds) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= size) return;
  float value = as_float(x[i]);
#pragma unroll 4
  for (int fold = 0; fold < folds; ++fold) value = fabsf(value - b[fold]);
  put(y + i, value);
}
"""


def prepare(x, b):
    name = f"many_small<{C_TYPES[x.dtype.name]}>"
    module = cupy.RawModule(code=CONVERSIONS + SOURCE, options=("-std=c++17",), name_expressions=(name,))
    kernel = module.get_function(name)
    points = cupy.ascontiguousarray(b)
    folds = numpy.int32(points.size)

    def run():
        source = cupy.ascontiguousarray(x)
        y = cupy.empty_like(source)
        if y.size:
            kernel((-(-y.size // BLOCK),), (BLOCK,), (source, points, y, numpy.int64(y.size), folds))
        return y

    return run
