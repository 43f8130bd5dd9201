// Softmax over keys that arrive block by block, in the accumulators of tensor-core products.
//
// A thread holds two rows of a block of scores: of n accumulators, c[4j] and c[4j + 1] belong to one, c[4j + 2] and
// c[4j + 3] to the other (mma.cuh, wgmma.cuh); the four lanes of a quad share the rows. Maxima are exact over the quad
// at once, sums stay each lane's own until the end.
#pragma once

#include <math_constants.h>

#include "float_pack.cuh"

namespace groundspeed {

// 2^x by the hardware: 2 ulp, denormal results are zero.
__device__ __forceinline__ float power_of_two(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

__device__ __forceinline__ float quad_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

__device__ __forceinline__ float quad_sum(float value) {
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

struct OnlineRows {
  float maximum[2];  // of the scores so far, before the scale
  float sum[2];      // of 2^(scale·(score - maximum)) in this lane's columns
};

__device__ __forceinline__ OnlineRows no_keys_yet() {
  return {{-CUDART_INF_F, -CUDART_INF_F}, {0.0f, 0.0f}};
}

// Replaces scores by 2^(scale·(score - maximum)) under the new maximum; shrink[r] is what earlier sums and products of
// row r are to be multiplied by. Of every row something must be finite by the first call.
template <int kCount>
__device__ __forceinline__ void take_in(OnlineRows& rows, float (&scores)[kCount], float scale, float (&shrink)[2]) {
  constexpr int kChains = 2;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float maxima[kChains] = {rows.maximum[r], -CUDART_INF_F};
#pragma unroll
    for (int j = 0; j < kCount / 4; ++j) {
#pragma unroll
      for (int i = 0; i < kChains; ++i) maxima[i] = fmaxf(maxima[i], scores[4 * j + 2 * r + i]);
    }
    const float maximum = quad_max(fmaxf(maxima[0], maxima[1]));
    shrink[r] = power_of_two((rows.maximum[r] - maximum) * scale);
    rows.maximum[r] = maximum;
    const float shift = maximum * scale;
    float sums[kChains] = {rows.sum[r] * shrink[r], 0.0f};
#pragma unroll
    for (int j = 0; j < kCount / 4; ++j) {
#pragma unroll
      for (int i = 0; i < kChains; ++i) {
        float& score = scores[4 * j + 2 * r + i];
        score = power_of_two(fmaf(score, scale, -shift));
        sums[i] += score;
      }
    }
    rows.sum[r] = sums[0] + sums[1];
  }
}

template <int kCount>
__device__ __forceinline__ void multiply_rows(float (&values)[kCount], const float (&factors)[2]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] *= factors[i / 2 % 2];
}

// Hides scores from the softmax: those of keys from `keys` on, and with causal those beyond the row. `row` is this
// thread's first row, `key` its first key.
template <int kCount>
__device__ __forceinline__ void hide(float (&scores)[kCount], int row, int key, int keys, bool causal) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int here = key + i / 4 * 8 + i % 2;
    const int seen = causal ? min(keys, row + i / 2 % 2 * 8 + 1) : keys;
    if (here >= seen) scores[i] = -CUDART_INF_F;
  }
}

template <typename T>
__device__ __forceinline__ uint32_t rounded_pair(float first, float second);
template <>
__device__ __forceinline__ uint32_t rounded_pair<__half>(float first, float second) {
  const __half2 pair = __floats2half2_rn(first, second);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
template <>
__device__ __forceinline__ uint32_t rounded_pair<__nv_bfloat16>(float first, float second) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// Accumulators of 16 keys as the left factor of the next product: what C holds is where A wants it.
template <typename T, int kCount>
__device__ __forceinline__ void as_factor(uint32_t (&factor)[4], const float (&weights)[kCount], int step) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int first = step * 8 + i * 2;
    factor[i] = rounded_pair<T>(weights[first], weights[first + 1]);
  }
}

}  // namespace groundspeed
