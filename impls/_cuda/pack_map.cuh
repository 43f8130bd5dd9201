// y[i] = function(a[i], b[i], ...) over contiguous tensors: a covering grid, two 16-byte vectors of each a thread.
//
// No thread loops: a block loads its tile, computes and stores it, and the next block takes its place. All loads are
// issued before the first use. Where a pointer is not 16-byte aligned, and in the last block, elements are taken one by
// one. Function is a struct with `__device__ float operator()(float, ...) const`: arithmetic is in float32.
#pragma once

#include <utility>

#include "elementwise.cuh"

namespace groundspeed {

constexpr int kMapBlock = 128;
constexpr int kMapVectors = 2;  // in flight a thread, of each input

template <typename T>
constexpr int kMapTile = kMapBlock * kMapVectors * FloatPack<T>::kLanes;

template <typename Function, typename T, int kInputs, size_t... kInput>
__device__ __forceinline__ FloatPack<T> map_pack(const Function& function, const FloatPack<T> (&packs)[kInputs],
                                                 std::index_sequence<kInput...>) {
  FloatPack<T> result;
#pragma unroll
  for (int lane = 0; lane < FloatPack<T>::kLanes; ++lane) {
    result.lanes[lane] = from_float<T>(function(to_float(packs[kInput].lanes[lane])...));
  }
  return result;
}

template <typename Function, typename T, typename... In>
__global__ void __launch_bounds__(kMapBlock)
    map_packs(Function function, T* __restrict__ y, int64_t size, bool aligned, const In* __restrict__... inputs) {
  constexpr int kInputs = sizeof...(In);
  constexpr int kLanes = FloatPack<T>::kLanes;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kMapTile<T>;
  if (aligned && first + kMapTile<T> <= size) {
    const int64_t mine = first + threadIdx.x * kLanes;
    FloatPack<T> packs[kMapVectors][kInputs];
#pragma unroll
    for (int v = 0; v < kMapVectors; ++v) {
      int input = 0;
      ((packs[v][input++] = load_pack(inputs + mine + v * kMapBlock * kLanes)), ...);
    }
#pragma unroll
    for (int v = 0; v < kMapVectors; ++v) {
      store_pack(y + mine + v * kMapBlock * kLanes,
                 map_pack(function, packs[v], std::make_index_sequence<kInputs>{}));
    }
  } else {
#pragma unroll 1
    for (int e = threadIdx.x; e < kMapTile<T> && first + e < size; e += kMapBlock) {
      y[first + e] = from_float<T>(function(to_float(inputs[first + e])...));
    }
  }
}

template <typename T, typename Function, typename... Pointers>
void launch_map(const Function& function, T* y, int64_t size, cudaStream_t stream, Pointers... inputs) {
  const bool aligned = is_aligned16(y) && (is_aligned16(inputs) && ...);
  const unsigned int grid = covering_grid(size, kMapTile<T>);
  map_packs<<<grid, kMapBlock, 0, stream>>>(function, y, size, aligned, inputs...);
}

inline void check_same_form(const Tensor& left, const Tensor& right, const char* kernel) {
  STD_TORCH_CHECK(left.dim() == right.dim() && left.scalar_type() == right.scalar_type(), kernel,
                  ": inputs must have one dtype and one shape");
  for (int64_t d = 0; d < left.dim(); ++d) {
    STD_TORCH_CHECK(left.size(d) == right.size(d), kernel, ": inputs must have one shape, dimension ", d, " is ",
                    left.size(d), " and ", right.size(d));
  }
}

// Applies function to tensors of one shape and dtype and returns a fresh contiguous tensor. Strided inputs are copied
// first; nothing is launched for empty ones.
template <typename Function, typename... Tensors>
Tensor map(const char* kernel, const Function& function, const Tensor& x, const Tensors&... others) {
  (check_same_form(x, others, kernel), ...);
  const Tensor sources[] = {torch::stable::contiguous(x), torch::stable::contiguous(others)...};
  Tensor y = torch::stable::empty_like(sources[0]);
  const int64_t size = y.numel();
  if (size == 0) return y;
  dispatch_float(y, kernel, [&](auto tag) {
    using T = decltype(tag);
    [&]<size_t... kInput>(std::index_sequence<kInput...>) {
      launch_map(function, output_pointer<T>(y), size, current_stream(y), input_pointer<T>(sources[kInput])...);
    }(std::make_index_sequence<1 + sizeof...(Tensors)>{});
  });
  check_launch(kernel);
  return y;
}

}  // namespace groundspeed
