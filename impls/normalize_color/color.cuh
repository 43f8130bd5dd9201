// What the colour kernels share: the folded weights, and one pixel.
#pragma once

#include "../_cuda/elementwise.cuh"

namespace groundspeed {

constexpr int kBlock = 256;
constexpr int kChannels = 3;

inline void check_channels(const Tensor& x) {
  STD_TORCH_CHECK(
      x.dim() == 4 && x.size(3) == kChannels, "normalize_color: expected x of shape [N, H, W, 3]");
}

// y = x · matrix + bias, in float32 registers.
struct Affine {
  float matrix[kChannels][kChannels];
  float bias[kChannels];
};

constexpr int kAffineWeights = 12;

// weights: the rows of the folded matrix, then the bias, as affine.py packs them.
__device__ __forceinline__ Affine load_affine(const float* __restrict__ weights) {
  Affine affine;
#pragma unroll
  for (int c = 0; c < kChannels; ++c) {
#pragma unroll
    for (int d = 0; d < kChannels; ++d) affine.matrix[c][d] = weights[c * kChannels + d];
    affine.bias[c] = weights[kChannels * kChannels + c];
  }
  return affine;
}

inline const float* affine_weights(const Tensor& weights) {
  STD_TORCH_CHECK(
      weights.scalar_type() == ScalarType::Float && weights.numel() == kAffineWeights && weights.is_contiguous(),
      "normalize_color: expected 12 float32 folded weights");
  return input_pointer<float>(weights);
}

__device__ __forceinline__ float output_channel(const Affine& affine, float x0, float x1, float x2, int d) {
  return x0 * affine.matrix[0][d] + (x1 * affine.matrix[1][d] + (x2 * affine.matrix[2][d] + affine.bias[d]));
}

// One pixel, channel by channel. in and out may be the same address: all of in is read before out is written.
template <typename T>
__device__ __forceinline__ void transform_pixel(const Affine& affine, const T* in, T* out) {
  const float x0 = to_float(in[0]), x1 = to_float(in[1]), x2 = to_float(in[2]);
#pragma unroll
  for (int d = 0; d < kChannels; ++d) out[d] = from_float<T>(output_channel(affine, x0, x1, x2, d));
}

}  // namespace groundspeed
