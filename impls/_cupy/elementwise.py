"""An elementwise kernel around a CUDA C++ expression: a covering grid, two 16-byte vectors a thread.

CuPy's own ElementwiseKernel moves single elements and computes an index for each; this one moves vectors. Where a
pointer is not 16-byte aligned, and in the last block, elements are taken one by one.
"""

import cupy
import numpy

from .dtypes import C_TYPES, CONVERSIONS

BLOCK = 128
VECTORS = 2  # in flight a thread, of each input

SOURCE = r"""
constexpr int kBlock = @BLOCK@, kVectors = @VECTORS@;

__device__ inline float function(@FLOATS@) { return @EXPRESSION@; }

template <typename T>
__global__ void __launch_bounds__(kBlock) map_packs(@POINTERS@, T* __restrict__ y, long long size, int aligned) {
  constexpr int kLanes = Pack<T>::kLanes;
  constexpr int kTile = kBlock * kVectors * kLanes;
  const long long first = static_cast<long long>(blockIdx.x) * kTile;
  if (aligned && first + kTile <= size) {
    Pack<T> @HELD@;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const long long at = first + (v * kBlock + threadIdx.x) * kLanes;
      @LOADS@
    }
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      Pack<T> result;
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) put(result.lanes + lane, function(@LANES@));
      *reinterpret_cast<uint4*>(y + first + (v * kBlock + threadIdx.x) * kLanes) =
          *reinterpret_cast<const uint4*>(&result);
    }
  } else {
    for (int e = threadIdx.x; e < kTile && first + e < size; e += kBlock) {
      const long long at = first + e;
      put(y + at, function(@ELEMENTS@));
    }
  }
}
"""


def source_of(expression, names, helpers=""):
    """CUDA C++ of a kernel that computes ``expression`` in the float variables ``names``, by functions ``helpers``."""
    load = "*reinterpret_cast<uint4*>({0}_held + v) = *reinterpret_cast<const uint4*>({0}_in + at);"
    parts = {
        "BLOCK": str(BLOCK),
        "VECTORS": str(VECTORS),
        "EXPRESSION": expression,
        "FLOATS": ", ".join(f"float {name}" for name in names),
        "POINTERS": ", ".join(f"const T* __restrict__ {name}_in" for name in names),
        "HELD": ", ".join(f"{name}_held[kVectors]" for name in names),
        "LOADS": " ".join(load.format(name) for name in names),
        "LANES": ", ".join(f"as_float({name}_held[v].lanes[lane])" for name in names),
        "ELEMENTS": ", ".join(f"as_float({name}_in[at])" for name in names),
    }
    text = CONVERSIONS + helpers + SOURCE
    for mark, part in parts.items():
        text = text.replace(f"@{mark}@", part)
    return text


def mapper(expression, helpers="", /, **inputs):
    """``run`` for ``y = expression``, written in the names of the inputs, which have one shape and dtype.

    ``helpers`` are CUDA C++ functions that the expression calls.
    """
    arrays = tuple(inputs.values())
    dtype = arrays[0].dtype
    name = f"map_packs<{C_TYPES[dtype.name]}>"
    code = source_of(expression, tuple(inputs), helpers)
    kernel = cupy.RawModule(code=code, options=("-std=c++17",), name_expressions=(name,)).get_function(name)
    tile = BLOCK * VECTORS * 16 // dtype.itemsize

    def run():
        sources = [cupy.ascontiguousarray(array) for array in arrays]
        y = cupy.empty(sources[0].shape, dtype=dtype)
        if y.size:
            aligned = all(array.data.ptr % 16 == 0 for array in (*sources, y))
            kernel((-(-y.size // tile),), (BLOCK,), (*sources, y, numpy.int64(y.size), numpy.int32(aligned)))
        return y

    return run
