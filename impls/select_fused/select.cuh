// A pass over x and a mask, two vectors of 16 bytes a thread; the rule that makes one element is the caller's.
#pragma once

#include "../_cuda/activation.cuh"
#include "../_cuda/elementwise.cuh"
#include "../_cuda/mask_pack.cuh"

namespace groundspeed {

constexpr int kSelectBlock = 128;
constexpr int kSelectVectors = 2;  // in flight a thread

template <typename T>
constexpr int kSelectTile = kSelectBlock * kSelectVectors * FloatPack<T>::kLanes;

// Rule is a struct with `__device__ float operator()(float x, bool set) const`.
template <typename Rule, typename T>
__global__ void __launch_bounds__(kSelectBlock) select_packs(
    Rule rule, const T* __restrict__ x, const uint8_t* __restrict__ mask, T* __restrict__ y, int64_t size,
    bool aligned) {
  constexpr int kLanes = FloatPack<T>::kLanes;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kSelectTile<T>;
  if (aligned && first + kSelectTile<T> <= size) {
    FloatPack<T> packs[kSelectVectors];
    MaskPack<kLanes> masks[kSelectVectors];
    const int64_t mine = first + threadIdx.x * kLanes;
#pragma unroll
    for (int v = 0; v < kSelectVectors; ++v) {
      packs[v] = load_pack(x + mine + v * kSelectBlock * kLanes);
      masks[v] = load_mask<kLanes>(mask + mine + v * kSelectBlock * kLanes);
    }
#pragma unroll
    for (int v = 0; v < kSelectVectors; ++v) {
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        packs[v].lanes[lane] = from_float<T>(rule(to_float(packs[v].lanes[lane]), masks[v].lanes[lane] != 0));
      }
      store_pack(y + mine + v * kSelectBlock * kLanes, packs[v]);
    }
  } else {
#pragma unroll 1
    for (int e = threadIdx.x; e < kSelectTile<T> && first + e < size; e += kSelectBlock) {
      y[first + e] = from_float<T>(rule(to_float(x[first + e]), mask[first + e] != 0));
    }
  }
}

template <typename Rule>
Tensor select(const char* kernel, const Rule& rule, const Tensor& input, const Tensor& masked) {
  STD_TORCH_CHECK(masked.numel() == input.numel() && masked.scalar_type() == ScalarType::Byte, kernel,
                  ": expected a mask of uint8 for each element");
  const Tensor mask = torch::stable::contiguous(masked);
  return elementwise(input, kernel, [&](const auto* x, auto* y, int64_t size, cudaStream_t stream) {
    using T = std::remove_pointer_t<decltype(y)>;
    const auto* bytes = input_pointer<uint8_t>(mask);
    const bool aligned = is_aligned16(x) && is_aligned16(y) && is_aligned16(bytes);
    select_packs<<<covering_grid(size, kSelectTile<T>), kSelectBlock, 0, stream>>>(rule, x, bytes, y, size, aligned);
  });
}

}  // namespace groundspeed
