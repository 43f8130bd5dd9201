// Layer normalisation of rows that are multiples of 16 bytes, a block a row, the row in registers: layer_norm/cuda_block
// without its cases for other rows.
#pragma once

#include "../_cuda/elementwise.cuh"
#include "../_cuda/row_block.cuh"
#include "../_cuda/row_slice.cuh"

namespace groundspeed {

constexpr float kNormEpsilon = 1e-5f;

template <typename T, int kElements>
__global__ void __launch_bounds__(kRowThreads<kElements>)
    layer_norm_row(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
                   T* __restrict__ y, int length) {
  __shared__ float scratch[2][kWarp];
  constexpr int kLanes = FloatPack<T>::kLanes;
  const int64_t start = static_cast<int64_t>(blockIdx.x) * length;
  float values[kElements];
  load_slice<T, kElements, true>(x + start, length, threadIdx.x, blockDim.x, 0.0f, values);
  const float mean = block_sum(slice_sum(values), scratch[0]) / length;
  float squares = 0.0f;
  for_packs<kElements, kLanes>(length, [&](int first, int) {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) squares = fmaf(values[first + i] - mean, values[first + i] - mean, squares);
  });
  const float scale = rsqrtf(block_sum(squares, scratch[1]) / length + kNormEpsilon);
  for_packs<kElements, kLanes>(length, [&](int first, int column) {
    float factor[kLanes], shift[kLanes], result[kLanes];
    load_lanes(weight + column, factor);
    load_lanes(bias + column, shift);
#pragma unroll
    for (int i = 0; i < kLanes; ++i) result[i] = fmaf((values[first + i] - mean) * scale, factor[i], shift[i]);
    store_lanes(y + start + column, result);
  });
}

// Of the rows of x [m, n], contiguous: a fresh tensor.
template <typename T>
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const char* name) {
  const int64_t rows = x.size(0), length = x.size(1);
  STD_TORCH_CHECK(weight.numel() == length && bias.numel() == length && length <= kLongestHeldRow, name,
                  ": expected a norm's weight and bias of x's last dimension, at most ", kLongestHeldRow);
  const Tensor y = torch::stable::empty_like(x);
  const auto launch = [&](auto elements) {
    const auto kernel = layer_norm_row<T, elements()>;
    const auto threads = static_cast<unsigned int>(ceil_div(length, elements() * kWarp) * kWarp);
    kernel<<<static_cast<unsigned int>(rows), threads, 0, current_stream(x)>>>(
        input_pointer<T>(x), input_pointer<T>(weight), input_pointer<T>(bias), output_pointer<T>(y),
        static_cast<int>(length));
  };
  length <= 8 * kRowThreads<8> ? launch(Constant<8>{}) : launch(Constant<kMostRowElements>{});
  check_launch(name);
  return y;
}

}  // namespace groundspeed
