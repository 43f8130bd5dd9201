// A convolution of float32 images on the CUDA cores, without writing out the pixels that each tap sees.
//
// A block owns 64 outputs of 32 · kOwn consecutive pixels; a warp eight of the outputs, a lane kOwn pixels, 32 apart,
// so that neighbouring lanes read neighbouring floats. For each eight channels the window of pixels (conv_window.cuh)
// and the weights of all taps are in shared memory; a lane then reads kOwn floats of pixels and eight of weights, the
// same in all lanes, for 8 · kOwn multiply-adds.
#pragma once

#include "conv_epilogue.cuh"

namespace groundspeed {

constexpr int kFmaThreads = 256;
constexpr int kFmaOutputs = 64;   // of a block
constexpr int kFmaOwnOutputs = 8; // of a thread
constexpr int kFmaDepth = 8;      // channels at a time
constexpr int kFmaZeros = 8;      // floats after the pixels of a channel, read for neighbours outside the image

inline int fma_shared_bytes(const ConvShape& shape, const ConvWindow& window) {
  return kFmaDepth * (window.rows() + kFmaZeros + shape.taps() * kFmaOutputs) * static_cast<int>(sizeof(float));
}

__device__ __forceinline__ void fill_float_window(float* pixels, const float* x, const ConvShape& shape,
                                                  const ConvWindow& window, int first, int channel) {
  const int pitch = window.rows() + kFmaZeros;
  const int64_t plane = shape.plane();
  for (int row = threadIdx.x; row < pitch; row += kFmaThreads) {
    const int run = row / window.rows_each;
    const int pixel = row < window.rows() ? run_start(shape, window, first, run) + row - run * window.rows_each : -1;
    const bool exists = pixel >= 0 && pixel < shape.pixels();
    const float* place = x + (exists ? pixel_offset(shape, shape.channels, pixel) : 0) + channel * plane;
#pragma unroll
    for (int c = 0; c < kFmaDepth; ++c) {
      pixels[c * pitch + row] = exists && channel + c < shape.channels ? place[c * plane] : 0.0f;
    }
  }
}

// The packed weights lie [channels / 8][taps][8][outputs], padded with zeros to multiples of 8 and of 64.
__device__ __forceinline__ void fill_float_weights(float* shared, const float* weights, int rows,
                                                   int64_t row_elements) {
  constexpr int kQuads = kFmaOutputs / 4;
  for (int i = threadIdx.x; i < rows * kQuads; i += kFmaThreads) {
    reinterpret_cast<float4*>(shared)[i] =
        reinterpret_cast<const float4*>(weights + i / kQuads * row_elements)[i % kQuads];
  }
}

template <int kOwn>
__global__ void __launch_bounds__(kFmaThreads, 2)
    conv_fma_kernel(const float* __restrict__ x, const float* __restrict__ weights, ConvEpilogue<float> out,
                    ConvShape shape, ConvWindow window) {
  extern __shared__ __align__(16) float conv_floats[];
  const int pitch = window.rows() + kFmaZeros;
  const int taps = shape.taps();
  float* pixels = conv_floats;                      // [8][pitch]
  float* tap_weights = pixels + kFmaDepth * pitch;  // [taps][8][64]

  const int output_tiles = (shape.outputs + kFmaOutputs - 1) / kFmaOutputs;
  const int first_output = blockIdx.x % output_tiles * kFmaOutputs;
  const int first = static_cast<int>(blockIdx.x / output_tiles) * 32 * kOwn;
  const int64_t row_elements = static_cast<int64_t>(output_tiles) * kFmaOutputs;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;

  uint32_t inside[kOwn];
#pragma unroll
  for (int j = 0; j < kOwn; ++j) inside[j] = taps_inside(shape, first + lane + j * 32);

  float sums[kFmaOwnOutputs][kOwn] = {};
  for (int channel = 0; channel < shape.channels; channel += kFmaDepth) {
    if (channel > 0) __syncthreads();  // every warp has left the window
    fill_float_window(pixels, x, shape, window, first, channel);
    fill_float_weights(tap_weights, weights + channel * taps * row_elements + first_output, kFmaDepth * taps,
                       row_elements);
    __syncthreads();
    for (int tap = 0; tap < taps; ++tap) {
      const int down = shape.side == 1 ? 0 : tap / 3 - 1;
      const int right = shape.side == 1 ? 0 : tap % 3 - 1;
      const int from = tap_row(shape, window, first, down, right) + lane;
      int place[kOwn];
#pragma unroll
      for (int j = 0; j < kOwn; ++j) place[j] = inside[j] >> tap & 1 ? from + j * 32 : window.rows();
#pragma unroll
      for (int c = 0; c < kFmaDepth; ++c) {
        const float* own = tap_weights + (tap * kFmaDepth + c) * kFmaOutputs + warp * kFmaOwnOutputs;
        const float4 low = *reinterpret_cast<const float4*>(own);
        const float4 high = *reinterpret_cast<const float4*>(own + 4);
        const float w[kFmaOwnOutputs] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
        for (int j = 0; j < kOwn; ++j) {
          const float value = pixels[c * pitch + place[j]];
#pragma unroll
          for (int i = 0; i < kFmaOwnOutputs; ++i) sums[i][j] = fmaf(w[i], value, sums[i][j]);
        }
      }
    }
  }

#pragma unroll
  for (int j = 0; j < kOwn; ++j) {
    const int pixel = first + lane + j * 32;
    if (pixel >= shape.pixels()) continue;
    const int64_t offset = pixel_offset(shape, shape.outputs, pixel);
#pragma unroll
    for (int i = 0; i < kFmaOwnOutputs; ++i) {
      const int output = first_output + warp * kFmaOwnOutputs + i;
      if (output >= shape.outputs) continue;
      put_one(out, offset + output * static_cast<int64_t>(shape.plane()), sums[i][j], out.scale[output],
              out.shift[output]);
    }
  }
}

}  // namespace groundspeed
