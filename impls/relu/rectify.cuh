// max(value, 0) without a branch, NaN in, NaN out.
//
// fmaxf(NaN, 0) is 0. A comparison with NaN is false, so the select below lets it pass; the 16-bit types have a
// maximum that propagates NaN in one instruction (from sm_80 on).
#pragma once

#include "../_cuda/elementwise.cuh"

namespace groundspeed {

__host__ __device__ __forceinline__ float rectify(float value) { return value < 0.0f ? 0.0f : value; }

__host__ __device__ __forceinline__ __half rectify(__half value) {
  return __hmax_nan(value, __half(__half_raw{0}));
}

__host__ __device__ __forceinline__ __nv_bfloat16 rectify(__nv_bfloat16 value) {
  return __hmax_nan(value, __nv_bfloat16(__nv_bfloat16_raw{0}));
}

}  // namespace groundspeed
