// One thread's share of a row, in registers as float: loaded once, used several times, stored once.
//
// Neighbouring threads hold neighbouring 16-byte packs (kVector) or neighbouring elements, so every memory
// instruction of a warp is one contiguous run. kVector needs the row's length to be a multiple of a pack and its
// address a multiple of 16 bytes.
#pragma once

#include "float_pack.cuh"

namespace groundspeed {

template <typename T, int kElements, bool kVector>
__device__ __forceinline__ void load_slice(const T* __restrict__ row, int length, int thread, int threads, float fill,
                                           float (&values)[kElements]) {
  constexpr int kLanes = kVector ? FloatPack<T>::kLanes : 1;
  static_assert(kElements % kLanes == 0);
  constexpr int kSteps = kElements / kLanes;
  // Written so that, where `threads` is a constant, one pointer and immediate offsets serve every step.
  const T* mine = row + thread * kLanes;
  const int left = length - thread * kLanes;
  const int step = threads * kLanes;
  if constexpr (kVector) {
    FloatPack<T> packs[kSteps];
    // All loads are issued before the first use: the bytes in flight are what hides DRAM's latency.
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      packs[i] = i * step < left ? load_pack(mine + i * step) : filled_pack<T>(fill);
    }
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        values[i * kLanes + lane] = to_float(packs[i].lanes[lane]);
      }
    }
  } else {
#pragma unroll
    for (int i = 0; i < kSteps; ++i) values[i] = i * step < left ? to_float(mine[i * step]) : fill;
  }
}

template <typename T, int kElements, bool kVector>
__device__ __forceinline__ void store_slice(T* __restrict__ row, int length, int thread, int threads,
                                            const float (&values)[kElements]) {
  constexpr int kLanes = kVector ? FloatPack<T>::kLanes : 1;
  constexpr int kSteps = kElements / kLanes;
  T* mine = row + thread * kLanes;
  const int left = length - thread * kLanes;
  const int step = threads * kLanes;
#pragma unroll
  for (int i = 0; i < kSteps; ++i) {
    if constexpr (kVector) {
      FloatPack<T> pack;
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) pack.lanes[lane] = from_float<T>(values[i * kLanes + lane]);
      if (i * step < left) store_pack(mine + i * step, pack);
    } else {
      if (i * step < left) mine[i * step] = from_float<T>(values[i]);
    }
  }
}

}  // namespace groundspeed
