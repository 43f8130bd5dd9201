// Softmax of rows that come through a ring, with or without a mask: a row goes into registers, and its chunks of the
// ring are given back before it is computed.
#pragma once

#include "mask_pack.cuh"
#include "row_ring.cuh"
#include "softmax_math.cuh"

namespace groundspeed {

template <typename T>
struct SoftmaxRows {
  const T* x;
  const uint8_t* mask;  // a byte an element, of rows as long as x's; only where masked
  T* y;
  int64_t count;
  int length;
};

// Elements of a row that a thread holds at most.
constexpr int kMostSoftmaxElements = 64;
constexpr int64_t kLongestSoftmaxRow = kMostRingThreads * kMostSoftmaxElements;

template <typename T, int kThreads, bool kMasked>
using SoftmaxRing = RowRing<kThreads, kMasked ? FloatPack<T>::kLanes : 0>;

template <typename T, int kThreads, int kChunks, bool kMasked>
__global__ void __launch_bounds__(kThreads + kWarp, kRingResidents<kThreads>) softmax_ring(SoftmaxRows<T> rows) {
  constexpr int kLanes = FloatPack<T>::kLanes;
  constexpr int kPacks = kChunks * kRingPacks;
  extern __shared__ __align__(128) unsigned char memory[];
  // Two scratches in turn: a slow warp may still read row i's while a fast one writes row i+1's.
  __shared__ SoftmaxPartial scratch[2][kWarp];
  SoftmaxRing<T, kThreads, kMasked> ring(memory);
  ring.open();
  if (threadIdx.x >= kThreads) {
    if (threadIdx.x == kThreads) {
      ring.feed(rows.x, static_cast<int64_t>(rows.length) * sizeof(T), rows.count, rows.mask,
                kMasked ? rows.length : 0);
    }
    return;
  }
  const int packs = rows.length / kLanes;
  RingPlace place;
  int turn = 0;
  for (int64_t row = blockIdx.x; row < rows.count; row += gridDim.x, place = ring.next(place, packs), turn ^= 1) {
    ring.forget();
    float values[kPacks * kLanes];
#pragma unroll
    for (int i = 0; i < kPacks * kLanes; ++i) values[i] = -CUDART_INF_F;
    const auto hold = [&](int held, int, const unsigned char* at, const unsigned char* mask_at) {
      const FloatPack<T> pack = load_pack(reinterpret_cast<const T*>(at));
      MaskPack<kLanes> masked{};
      if constexpr (kMasked) masked = load_mask<kLanes>(mask_at);
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        if (!masked.lanes[i]) values[held * kLanes + i] = to_float(pack.lanes[i]);
      }
    };
    ring.template pass<kChunks, true, true>(place, packs, hold);
    const SoftmaxPartial warp_part = warp_exponentials(values);
    const int lane = threadIdx.x % kWarp;
    if (lane == 0) scratch[turn][threadIdx.x / kWarp] = warp_part;
    ring_sync<kThreads>();
    const SoftmaxPartial whole =
        warp_merge(lane < kThreads / kWarp ? scratch[turn][lane] : SoftmaxPartial{-CUDART_INF_F, 0.0f});
    const float scale = rescale(warp_part.maximum, whole.maximum) / whole.sum;
    T* y = rows.y + row * rows.length;
#pragma unroll
    for (int held = 0; held < kPacks; ++held) {
      const int number = held * kThreads + ring.thread;
      FloatPack<T> result;
#pragma unroll
      for (int i = 0; i < kLanes; ++i) result.lanes[i] = from_float<T>(values[held * kLanes + i] * scale);
      if (number < packs) store_pack(y + number * kLanes, result);
    }
  }
}

template <bool kMasked, typename T>
void launch_softmax_ring(const Tensor& x, const SoftmaxRows<T>& rows, cudaStream_t stream) {
  for_ring(static_cast<int64_t>(rows.length) * sizeof(T), [&](auto threads, auto chunks) {
    constexpr bool kHeld = chunks() * kRingPacks * FloatPack<T>::kLanes <= kMostSoftmaxElements;
    STD_TORCH_CHECK(kHeld, "rows of at most ", kLongestSoftmaxRow, " elements, got ", rows.length);
    if constexpr (kHeld) {
      launch_ring<SoftmaxRing<T, threads(), kMasked>, threads()>(softmax_ring<T, threads(), chunks(), kMasked>, x,
                                                                 rows.count, stream, rows);
    }
  });
}

}  // namespace groundspeed
