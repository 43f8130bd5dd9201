// ReLU by 16-byte vectors (4 floats, 8 halves) in a grid-stride loop, the rest element by element.
//
// The block size is the only thing in which the files that include this differ.
#pragma once

#include "rectify.cuh"

namespace groundspeed {

constexpr int kUnroll = 4;  // vectors in flight a thread: loads are issued before the first store waits for one

template <typename T>
__device__ __forceinline__ FloatPack<T> rectify(FloatPack<T> vector) {
#pragma unroll
  for (int k = 0; k < FloatPack<T>::kLanes; ++k) vector.lanes[k] = rectify(vector.lanes[k]);
  return vector;
}

// vectors: how many whole, aligned 16-byte vectors x begins with; elements beyond them are done one by one.
template <int Block, typename T>
__global__ void __launch_bounds__(Block)
relu_vec4(const T* __restrict__ x, T* __restrict__ y, int64_t size, int64_t vectors) {
  constexpr int kWidth = FloatPack<T>::kLanes;
  const int64_t stride = grid_threads();
  int64_t v = global_thread();
  for (; v + (kUnroll - 1) * stride < vectors; v += kUnroll * stride) {
    FloatPack<T> held[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) held[u] = load_pack(x + (v + u * stride) * kWidth);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) store_pack(y + (v + u * stride) * kWidth, rectify(held[u]));
  }
#pragma unroll 1  // a few rounds at most: unrolled, it would begin with a 64-bit division
  for (; v < vectors; v += stride) store_pack(y + v * kWidth, rectify(load_pack(x + v * kWidth)));
#pragma unroll 1
  for (int64_t i = vectors * kWidth + global_thread(); i < size; i += stride) y[i] = rectify(x[i]);
}

template <int Block>
Tensor run_vec4(const Tensor& x) {
  return elementwise(x, "relu_vec4", [&](const auto* in, auto* out, int64_t size, cudaStream_t stream) {
    constexpr int kWidth = kPackBytes / sizeof(*in);
    const bool aligned = is_aligned16(in) && is_aligned16(out);
    const int64_t vectors = aligned ? size / kWidth : 0;
    const int64_t items = vectors > 0 ? vectors : size;
    relu_vec4<Block><<<resident_grid(x, items, Block), Block, 0, stream>>>(in, out, size, vectors);
  });
}

}  // namespace groundspeed
