"""Which dtypes CuPy's run-time compiled kernels cover, and the C++ types that stand for them."""

C_TYPES = {"float32": "float", "float16": "__half"}

# Arithmetic is in float32 whatever the storage type is.
CONVERSIONS = r"""
#include <cuda_fp16.h>

__device__ inline float as_float(float value) { return value; }
__device__ inline float as_float(__half value) { return __half2float(value); }
__device__ inline void put(float* place, float value) { *place = value; }
__device__ inline void put(__half* place, float value) { *place = __float2half_rn(value); }

template <typename T>
struct alignas(16) Pack {
  static constexpr int kLanes = 16 / sizeof(T);
  T lanes[kLanes];
};
"""


def unsupported(dtype, **shape):
    if dtype not in C_TYPES:
        return f"CuPy has no {dtype} arrays of its own (from 14 on, only through the package ml_dtypes)"
    return None
