// The host side of a convolution with its epilogue: checks, the choice of a tile, the launch.
#pragma once

#include "conv_fma.cuh"
#include "conv_mma.cuh"
#include "elementwise.cuh"

namespace groundspeed {

using WideConvTile = ConvTile<256, 64, 64, false>;
using NarrowConvTile = ConvTile<64, 32, 32, true>;  // where wide ones would leave multiprocessors idle

struct Convolution {
  Tensor x;         // [images, channels, height, width], contiguous
  Tensor weights;   // packed by conv_weights.py
  Tensor scale;     // float32 [outputs], or more
  Tensor shift;     // float32 [outputs]
  Tensor residual;  // contiguous, like y; x where there is none
  Tensor y;         // [images, outputs, height, width], contiguous
  ConvShape shape;
  ConvEnd end;
};

// Of `weights` packed by conv_weights.py. Raises where sizes do not fit or exceed 2^30 pixels.
inline ConvShape conv_shape(const char* name, const Tensor& x, const Tensor& weights, const Tensor& shift, int side) {
  STD_TORCH_CHECK(x.dim() == 4 && shift.dim() == 1, name, ": expected x [N, C, H, W] and a shift for each output");
  const int64_t pixels = x.size(0) * x.size(2) * x.size(3);
  constexpr int64_t kMost = 1ll << 30;  // kernels number pixels in int, and look up to a window further
  STD_TORCH_CHECK(pixels < kMost && x.size(1) < kMost && shift.size(0) < kMost, name,
                  ": expected fewer than 2^30 pixels and channels");
  const bool wide = x.scalar_type() == ScalarType::Float;
  const int64_t depth = ceil_div(x.size(1), wide ? kFmaDepth : kConvDepth) * (wide ? kFmaDepth : kConvDepth);
  const int64_t outputs = ceil_div(shift.size(0), kConvOutputs) * kConvOutputs;
  STD_TORCH_CHECK(weights.numel() == depth * side * side * outputs && weights.scalar_type() == x.scalar_type(), name,
                  ": weights are not packed for these channels, this side and this dtype");
  STD_TORCH_CHECK(is_aligned16(weights.data_ptr()), name, ": packed weights must begin at a multiple of 16 bytes");
  return {static_cast<int>(x.size(0)), static_cast<int>(x.size(1)), static_cast<int>(x.size(2)),
          static_cast<int>(x.size(3)), static_cast<int>(shift.size(0)), side};
}

inline void allow_shared(const char* name, const void* kernel, int bytes) {
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  STD_TORCH_CHECK(error == cudaSuccess, name, ": ", bytes, " bytes of shared memory: ", cudaGetErrorString(error));
}

inline unsigned int conv_blocks(const ConvShape& shape, int pixels) {
  return covering_grid(ceil_div(shape.pixels(), pixels) * ceil_div(shape.outputs, kConvOutputs), 1);
}

// A wide tile is worth a quarter of the multiprocessors left idle, not more.
inline bool fills_with(const Convolution& c, int pixels) {
  return conv_blocks(c.shape, pixels) * 4ll >= device_attribute(c.x, cudaDevAttrMultiProcessorCount) * 3ll;
}

template <typename T>
ConvEpilogue<T> epilogue_of(const Convolution& c) {
  return {input_pointer<float>(c.scale), input_pointer<float>(c.shift), input_pointer<T>(c.residual),
          output_pointer<T>(c.y), c.end};
}

template <typename T, typename Tile>
void launch_mma_tile(const char* name, const Convolution& c, PlaneAccess access, bool by_four, cudaStream_t stream) {
  const ConvWindow window = window_of(c.shape, Tile::kPixels);
  const int bytes = (window.rows() + kConvZeroRows) * kConvRowBytes + kConvStages * kConvTapBytes;
  const auto kernel = conv_mma_kernel<T, Tile>;
  allow_shared(name, reinterpret_cast<const void*>(kernel), bytes);
  kernel<<<conv_blocks(c.shape, Tile::kPixels), kConvThreads, bytes, stream>>>(
      input_pointer<T>(c.x), input_pointer<T>(c.weights), epilogue_of<T>(c), c.shape, window, access, by_four);
}

template <typename T>
void launch_mma(const char* name, const Convolution& c, cudaStream_t stream) {
  const auto aligned8 = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 8 == 0; };
  const bool by_four = c.shape.plane() % 4 == 0 && aligned8(c.residual.data_ptr()) && aligned8(c.y.data_ptr());
  const PlaneAccess access = plane_access(c.shape, input_pointer<T>(c.x));
  const bool wide = by_four && access != PlaneAccess::kOne && fills_with(c, WideConvTile::kPixels);
  wide ? launch_mma_tile<T, WideConvTile>(name, c, access, by_four, stream)
       : launch_mma_tile<T, NarrowConvTile>(name, c, access, by_four, stream);
}

template <int kOwn>
void launch_fma(const char* name, const Convolution& c, cudaStream_t stream) {
  const ConvWindow window = window_of(c.shape, 32 * kOwn);
  const int bytes = fma_shared_bytes(c.shape, window);
  const auto kernel = conv_fma_kernel<kOwn>;
  allow_shared(name, reinterpret_cast<const void*>(kernel), bytes);
  kernel<<<conv_blocks(c.shape, 32 * kOwn), kFmaThreads, bytes, stream>>>(
      input_pointer<float>(c.x), input_pointer<float>(c.weights), epilogue_of<float>(c), c.shape, window);
}

// Launches nothing for an empty y.
inline void launch_convolution(const char* name, const Convolution& c) {
  if (c.y.numel() == 0) return;
  const cudaStream_t stream = current_stream(c.x);
  dispatch_float(c.x, name, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (sizeof(T) == 4) {
      fills_with(c, 32 * 8) ? launch_fma<8>(name, c, stream) : launch_fma<2>(name, c, stream);
    } else {
      launch_mma<T>(name, c, stream);
    }
  });
  check_launch(name);
}

}  // namespace groundspeed
