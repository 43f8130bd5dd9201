// One pixel a thread in plain, unfolded arithmetic: ((x - mean) / std) · M as it is written.
//
// The division is a parameter, the only thing in which the files that include this differ.
#pragma once

#include "color.cuh"

namespace groundspeed {

template <typename Division, typename T>
__global__ void normalize_color_pixel(
    const T* __restrict__ x, const T* __restrict__ mean, const T* __restrict__ std, const T* __restrict__ M,
    T* __restrict__ y, int64_t pixels) {
  const int64_t pixel = global_thread();
  if (pixel >= pixels) return;
  float z[kChannels];
#pragma unroll
  for (int c = 0; c < kChannels; ++c) {
    z[c] = Division::divide(to_float(x[kChannels * pixel + c]) - to_float(mean[c]), to_float(std[c]));
  }
#pragma unroll
  for (int d = 0; d < kChannels; ++d) {
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < kChannels; ++c) sum += z[c] * to_float(M[c * kChannels + d]);
    y[kChannels * pixel + d] = from_float<T>(sum);
  }
}

template <typename Division>
Tensor run_pixel(const Tensor& x, const Tensor& mean, const Tensor& std, const Tensor& M) {
  check_channels(x);
  for (const Tensor* weight : {&mean, &std, &M}) {
    STD_TORCH_CHECK(
        weight->is_contiguous() && weight->scalar_type() == x.scalar_type(),
        "normalize_color: expected contiguous weights of x's dtype");
  }
  return elementwise(x, "normalize_color_pixel", [&](const auto* in, auto* out, int64_t size, cudaStream_t stream) {
    using T = std::remove_pointer_t<decltype(out)>;
    const int64_t pixels = size / kChannels;
    normalize_color_pixel<Division><<<covering_grid(pixels, kBlock), kBlock, 0, stream>>>(
        in, input_pointer<T>(mean), input_pointer<T>(std), input_pointer<T>(M), out, pixels);
  });
}

}  // namespace groundspeed
