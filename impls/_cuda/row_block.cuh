// A block a row: sums over the block, and how many threads and elements a thread a row of some length gets.
#pragma once

#include <type_traits>

#include "float_pack.cuh"
#include "reduce.cuh"

namespace groundspeed {

constexpr int kFewRowThreads = 128;
constexpr int kMostRowThreads = 1024;
constexpr int kMostRowElements = 32;  // a thread, so that 1024 threads stay within 64 registers each
constexpr int kLongestHeldRow = kMostRowThreads * kMostRowElements;

// Elements that a thread takes at a time from a row that does not fit into registers.
template <bool kVector>
constexpr int kRowChunk = kVector ? 16 : 8;

// The most threads that a row held kElements to a thread is given by for_row_length.
template <int kElements>
constexpr int kRowThreads = kElements < kMostRowElements ? 256 : kMostRowThreads;

// The sum of one value a thread, in every thread, through `scratch[32]`: one barrier. Another call on the same scratch
// needs a barrier in between.
__device__ __forceinline__ float block_sum(float value, float* scratch) {
  const int lane = threadIdx.x % kWarp;
  value = warp_sum(value);
  if (lane == 0) scratch[threadIdx.x / kWarp] = value;
  __syncthreads();
  const int warps = blockDim.x / kWarp;
  return warp_sum(lane < warps ? scratch[lane] : 0.0f);
}

// A thread's share of a row goes by packs of kLanes elements: FloatPack<T>::kLanes of them, or one where rows are not
// 16-byte aligned.
template <typename T, bool kVector>
constexpr int kSliceLanes = kVector ? FloatPack<T>::kLanes : 1;

template <int kLanes, typename T>
__device__ __forceinline__ void load_lanes(const T* address, float (&values)[kLanes]) {
  if constexpr (kLanes == 1) {
    values[0] = to_float(*address);
  } else {
    const FloatPack<T> pack = load_pack(address);
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) values[lane] = to_float(pack.lanes[lane]);
  }
}

template <int kLanes, typename T>
__device__ __forceinline__ void store_lanes(T* address, const float (&values)[kLanes]) {
  if constexpr (kLanes == 1) {
    *address = from_float<T>(values[0]);
  } else {
    FloatPack<T> pack;
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) pack.lanes[lane] = from_float<T>(values[lane]);
    store_pack(address, pack);
  }
}

// Calls body(index of the first element in registers, its column) for each pack of this thread's slice, as load_slice
// of row_slice.cuh lays it out.
template <int kElements, int kLanes, typename Body>
__device__ __forceinline__ void for_packs(int length, Body&& body) {
#pragma unroll
  for (int first = 0; first < kElements; first += kLanes) {
    const int column = first * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x) * kLanes;
    if (column < length) body(first, column);
  }
}

template <int kElements>
__device__ __forceinline__ float slice_sum(const float (&values)[kElements]) {
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kElements; ++i) sum += values[i];
  return sum;
}

// Whether a row can be moved by 16-byte packs, given its length and the pointers of its tensors.
template <typename T, typename... Pointers>
bool rows_are_packs(int64_t length, Pointers... pointers) {
  return length % FloatPack<T>::kLanes == 0 && (is_aligned16(pointers) && ...);
}

template <int kValue>
using Constant = std::integral_constant<int, kValue>;

// Calls held(Constant<elements a thread>, bool_constant<by packs>, threads) for a row that fits into the registers of
// one block, else walked(bool_constant<by packs>). Few elements a thread for short rows, so that a row still fills
// several warps. Rows that are not 16-byte aligned need an address and a bound for every element: 32 do not fit.
template <typename Held, typename Walked>
void for_row_length(int64_t length, bool packs, Held&& held, Walked&& walked) {
  const auto with = [&](auto elements, auto by_packs) {
    const int64_t warps = (length + elements() * kWarp - 1) / (elements() * kWarp);
    held(elements, by_packs, static_cast<unsigned>(warps * kWarp));
  };
  const auto short_row = [&](auto by_packs) {
    // Beyond, two packs a thread in flight: with one, 2048 threads do not keep DRAM busy while rows come and go.
    if (length <= 8 * kFewRowThreads) return with(Constant<8>{}, by_packs);
    return with(Constant<16>{}, by_packs);
  };
  const bool is_short = length <= 16 * kRowThreads<16>;
  if (packs) {
    if (is_short) return short_row(std::true_type{});
    if (length <= kLongestHeldRow) return with(Constant<kMostRowElements>{}, std::true_type{});
    return walked(std::true_type{});
  }
  return is_short ? short_row(std::false_type{}) : walked(std::false_type{});
}

// Calls body(first element, elements) for each chunk of a row that does not fit, in order.
template <bool kVector, typename Body>
__device__ __forceinline__ void for_chunks(int64_t length, Body&& body) {
  const int64_t chunk = static_cast<int64_t>(blockDim.x) * kRowChunk<kVector>;
#pragma unroll 1
  for (int64_t from = 0; from < length; from += chunk) {
    body(from, static_cast<int>(length - from < chunk ? length - from : chunk));
  }
}

}  // namespace groundspeed
