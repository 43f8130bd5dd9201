// The arithmetic of a numerically safe softmax: exponentials against a running maximum, merged between threads.
//
// A partial result over some elements is (maximum m, sum of exp(x - m)). Two partials merge exactly as in
// Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018): rescale both sums to the larger
// maximum and add. A row of nothing but -inf gives NaN, as torch.softmax does; a NaN anywhere makes its row NaN.
#pragma once

#include <math_constants.h>

#include "reduce.cuh"

namespace groundspeed {

struct SoftmaxPartial {
  float maximum;
  float sum;
};

// e^x by the hardware's base-2 exponential: 2 ulp plus the rounding of x·log2(e); denormal results are zero.
__device__ __forceinline__ float fast_exp(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * 1.44269504088896340736f));
  return result;
}

// What to subtract: -inf - (-inf) would be NaN where only a part of the row is -inf.
__device__ __forceinline__ float safe_shift(float maximum) { return maximum == -CUDART_INF_F ? 0.0f : maximum; }

// The factor that rescales a sum taken against `from` to one against `to`. A part that is all -inf has the sum 0.
__device__ __forceinline__ float rescale(float from, float to) {
  return from == -CUDART_INF_F ? 0.0f : fast_exp(from - to);
}

// Replaces x by exp(x - m) with m the warp's maximum, and returns the warp's partial in every lane. Four chains of
// maxima and of sums, because one of up to 128 dependent operations would leave a warp waiting for itself.
template <int kElements>
__device__ __forceinline__ SoftmaxPartial warp_exponentials(float (&values)[kElements]) {
  constexpr int kChains = 4;
  static_assert(kElements % kChains == 0);
  float maxima[kChains];
#pragma unroll
  for (int i = 0; i < kElements; ++i) {
    maxima[i % kChains] = i < kChains ? values[i] : fmaxf(maxima[i % kChains], values[i]);
  }
  const float maximum = warp_max(fmaxf(fmaxf(maxima[0], maxima[1]), fmaxf(maxima[2], maxima[3])));
  const float shift = safe_shift(maximum);
  float sums[kChains] = {};
#pragma unroll
  for (int i = 0; i < kElements; ++i) {
    values[i] = fast_exp(values[i] - shift);
    sums[i % kChains] += values[i];
  }
  return {maximum, warp_sum((sums[0] + sums[1]) + (sums[2] + sums[3]))};
}

// Merges one partial a lane over a warp.
__device__ __forceinline__ SoftmaxPartial warp_merge(SoftmaxPartial part) {
  const float maximum = warp_max(part.maximum);
  return {maximum, warp_sum(part.sum * rescale(part.maximum, maximum))};
}

// Merges one partial a warp over a block, through `scratch[32]`: one barrier. Another call on the same scratch needs
// a barrier in between.
__device__ __forceinline__ SoftmaxPartial block_merge(SoftmaxPartial warp_part, SoftmaxPartial* scratch) {
  const int lane = threadIdx.x % kWarp;
  if (lane == 0) scratch[threadIdx.x / kWarp] = warp_part;
  __syncthreads();
  const int warps = blockDim.x / kWarp;
  return warp_merge(lane < warps ? scratch[lane] : SoftmaxPartial{-CUDART_INF_F, 0.0f});
}

}  // namespace groundspeed
