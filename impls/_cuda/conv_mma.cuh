// A convolution of 16-bit images as a product on tensor cores, weights [outputs, taps · channels] by the pixels that
// each tap sees, without ever writing those pixels out (implicit GEMM).
//
// A block owns 64 outputs of consecutive pixels. For each 64 channels it brings its window of pixels into shared memory
// once (conv_fill.cuh) and multiplies it tap by tap: a tap is another offset into the window, since ldmatrix takes a
// row address from every lane. Lanes whose neighbour lies outside the image name a row of zeros. Weights arrive by
// cp.async, two taps ahead. Outputs are the rows of a fragment and pixels its columns, so that a lane ends with
// neighbours of one plane.
#pragma once

#include "conv_epilogue.cuh"
#include "conv_fill.cuh"
#include "mma.cuh"

namespace groundspeed {

constexpr int kConvOutputs = 64;  // of a block
constexpr int kConvThreads = 128;
constexpr int kConvStages = 3;    // taps of weights in shared memory
constexpr int kConvStep = 16;     // channels of one mma
constexpr int kConvTapBytes = kConvOutputs * kConvRowBytes;
constexpr int kConvZeroRows = 8;  // one for each place that the swizzle gives a row

// kAnyPlane: also for planes that are no multiple of four pixels, whose elements are moved one by one. That is code, so
// only one tile has it.
template <int kPixels_, int kWarpOutputs_, int kWarpPixels_, bool kAnyPlane_>
struct ConvTile {
  static constexpr bool kAnyPlane = kAnyPlane_;
  static constexpr int kPixels = kPixels_;
  static constexpr int kWarpOutputs = kWarpOutputs_;
  static constexpr int kWarpPixels = kWarpPixels_;
  static constexpr int kWarpsAcross = kPixels / kWarpPixels;
  static_assert(kConvOutputs / kWarpOutputs * kWarpsAcross * 32 == kConvThreads);
};

// The packed weights of a convolution lie [channels / 64][taps][outputs][64], padded with zeros to multiples of 64
// (conv_weights.py): what a block needs of one tap and 64 channels is one run of 8 KiB.
template <typename T>
__device__ __forceinline__ void fetch_tap(unsigned char* stage, const T* tap) {
  const int chunk = threadIdx.x % kConvChunks;
  const int row = threadIdx.x / kConvChunks;
  constexpr int kRowsApart = kConvThreads / kConvChunks;
  static_assert(kRowsApart % 8 == 0);  // so that the swizzle is the same in all rows of a thread
  const uint32_t destination = shared_address(stage) + conv_swizzled(row, chunk);
  const T* source = tap + row * kConvDepth + chunk * 8;
#pragma unroll
  for (int i = 0; i < kConvOutputs / kRowsApart; ++i) {
    copy_async16(destination + i * kRowsApart * kConvRowBytes, source + i * kRowsApart * kConvDepth, true);
  }
}

template <typename Tile>
struct ConvFragments {
  uint32_t weights[Tile::kWarpOutputs / 16][4];
  uint32_t pixels[Tile::kWarpPixels / 16][4];  // [j][0], [1]: pixels 0 to 7 of sixteen; [2], [3]: 8 to 15
};

// `weight_lane` and `pixel_lanes` are the addresses at which this lane names a row for the first k-step; the next one
// is two chunks on, and the swizzle is an exclusive or as well.
template <typename Tile>
__device__ __forceinline__ void load_conv_fragments(ConvFragments<Tile>& out, uint32_t weight_lane,
                                                    const uint32_t (&pixel_lanes)[Tile::kWarpPixels / 16], int step) {
#pragma unroll
  for (int i = 0; i < Tile::kWarpOutputs / 16; ++i) {
    load_matrices(out.weights[i], (weight_lane ^ (step * 32)) + i * 16 * kConvRowBytes);
  }
#pragma unroll
  for (int j = 0; j < Tile::kWarpPixels / 16; ++j) load_matrices(out.pixels[j], pixel_lanes[j] ^ (step * 32));
}

// The accumulators of a warp: sums[i][j] are its outputs 16i.., pixels 8j.., a fragment C of mma.cuh.
template <typename Tile>
using ConvSums = float[Tile::kWarpOutputs / 16][Tile::kWarpPixels / 8][4];

// Adds the products of one tap and 64 channels. The fragments of the next k-step are on their way while one is
// multiplied.
template <typename T, typename Tile>
__device__ __forceinline__ void multiply_slice(ConvSums<Tile>& sums, uint32_t weight_lane,
                                               const uint32_t (&pixel_lanes)[Tile::kWarpPixels / 16]) {
  constexpr int kSteps = kConvDepth / kConvStep;
  ConvFragments<Tile> fragments[2];
  load_conv_fragments<Tile>(fragments[0], weight_lane, pixel_lanes, 0);
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    if (step + 1 < kSteps) load_conv_fragments<Tile>(fragments[(step + 1) % 2], weight_lane, pixel_lanes, step + 1);
    const ConvFragments<Tile>& now = fragments[step % 2];
#pragma unroll
    for (int i = 0; i < Tile::kWarpOutputs / 16; ++i) {
#pragma unroll
      for (int j = 0; j < Tile::kWarpPixels / 8; ++j) {
        multiply_accumulate<T>(sums[i][j], now.weights[i], now.pixels[j / 2][j % 2 * 2],
                               now.pixels[j / 2][j % 2 * 2 + 1]);
      }
    }
  }
}

// Stores a warp's result by fours of neighbouring pixels. Lanes of a pair swap halves of two neighbouring fragments, so
// that a quad of lanes covers a whole sector of a plane. Residuals are read well ahead of the first store: the compiler
// may not move a load over a store that could be to the same place.
template <typename T, typename Tile>
__device__ __forceinline__ void store_by_four(const ConvEpilogue<T>& out, const ConvShape& shape, int first_output,
                                              int first_pixel, const ConvSums<Tile>& sums) {
  constexpr int kRows = Tile::kWarpOutputs / 8;
  constexpr int kPairs = 2;  // of fragments at a time
  const int output = first_output + threadIdx.x % 32 / 4;
  const bool odd = threadIdx.x % 2 != 0;
  const int64_t plane = shape.plane();
  float scale[kRows], shift[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const bool exists = output + i * 8 < shape.outputs;
    scale[i] = exists ? out.scale[output + i * 8] : 0.0f;
    shift[i] = exists ? out.shift[output + i * 8] : 0.0f;
  }
#pragma unroll
  for (int block = 0; block < Tile::kWarpPixels / 16; block += kPairs) {
    int64_t offset[kPairs];
    bool exists[kPairs];
    uint2 residual[kPairs][kRows];
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) {
      const int pixel = first_pixel + (block + pair) * 16 + (odd ? 8 : 0) + threadIdx.x % 4 / 2 * 4;
      exists[pair] = pixel < shape.pixels();
      offset[pair] = pixel_offset(shape, shape.outputs, exists[pair] ? pixel : 0) + output * plane;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const bool reads = out.end != ConvEnd::kRelu && exists[pair] && output + i * 8 < shape.outputs;
        residual[pair][i] = reads ? read_four(out, offset[pair] + i * 8 * plane) : make_uint2(0, 0);
      }
    }
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const float* left = sums[i / 2][(block + pair) * 2] + i % 2 * 2;
        const float* right = sums[i / 2][(block + pair) * 2 + 1] + i % 2 * 2;
        const float other0 = __shfl_xor_sync(0xffffffffu, odd ? left[0] : right[0], 1);
        const float other1 = __shfl_xor_sync(0xffffffffu, odd ? left[1] : right[1], 1);
        const float values[4] = {odd ? other0 : left[0], odd ? other1 : left[1], odd ? right[0] : other0,
                                 odd ? right[1] : other1};
        if (exists[pair] && output + i * 8 < shape.outputs) {
          put_four(out, offset[pair] + i * 8 * plane, values, scale[i], shift[i], residual[pair][i]);
        }
      }
    }
  }
}

// The same, element by element, for planes that are no multiple of four pixels.
template <typename T, typename Tile>
__device__ __forceinline__ void store_by_one(const ConvEpilogue<T>& out, const ConvShape& shape, int first_output,
                                             int first_pixel, const ConvSums<Tile>& sums) {
  const int64_t plane = shape.plane();
#pragma unroll
  for (int j = 0; j < Tile::kWarpPixels / 8; ++j) {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int pixel = first_pixel + j * 8 + threadIdx.x % 4 * 2 + k;
      if (pixel >= shape.pixels()) continue;
      const int64_t offset = pixel_offset(shape, shape.outputs, pixel);
#pragma unroll
      for (int i = 0; i < Tile::kWarpOutputs / 8; ++i) {
        const int output = first_output + i * 8 + threadIdx.x % 32 / 4;
        if (output >= shape.outputs) continue;
        put_one(out, offset + output * plane, sums[i / 2][j][i % 2 * 2 + k], out.scale[output], out.shift[output]);
      }
    }
  }
}

template <typename T, typename Tile>
__global__ void __launch_bounds__(kConvThreads, 2)
    conv_mma_kernel(const T* __restrict__ x, const T* __restrict__ weights, ConvEpilogue<T> out, ConvShape shape,
                    ConvWindow window, PlaneAccess access, bool by_four) {
  extern __shared__ __align__(128) unsigned char conv_shared[];
  const int zero_row = window.rows();
  unsigned char* stages = conv_shared + (zero_row + kConvZeroRows) * kConvRowBytes;

  const int output_tiles = (shape.outputs + kConvOutputs - 1) / kConvOutputs;
  const int first_output = blockIdx.x % output_tiles * kConvOutputs;
  const int first = static_cast<int>(blockIdx.x / output_tiles) * Tile::kPixels;
  const int taps = shape.taps();
  const int depth = (shape.channels + kConvDepth - 1) / kConvDepth;
  const int slices = depth * taps;
  const int64_t slice_elements = static_cast<int64_t>(output_tiles) * kConvOutputs * kConvDepth;
  weights += first_output * kConvDepth;
  // Slices, of one tap and 64 channels, are fetched in order, each once.
  const auto fetch = [&](int slice) {
    if (slice < slices) fetch_tap(stages + slice % kConvStages * kConvTapBytes, weights);
    weights += slice_elements;
    commit_copies();  // an empty group too, so that groups keep counting slices
  };

  // Of weights, lanes 0 to 15 name rows of the left two 8 x 8 matrices, lanes 16 to 31 of the right two. Of pixels,
  // lanes 0 to 15 name the first eight pixels, by eights of channels, lanes 16 to 31 the second eight.
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int warp_output = warp / Tile::kWarpsAcross * Tile::kWarpOutputs;
  const int warp_pixel = warp % Tile::kWarpsAcross * Tile::kWarpPixels;
  const uint32_t weight_lane = shared_address(stages) + conv_swizzled(warp_output + lane % 16, lane / 16);
  const int own_pixel = warp_pixel + lane / 16 * 8 + lane % 8;
  const int own_chunk = lane / 8 % 2;
  uint32_t inside[Tile::kWarpPixels / 16];
#pragma unroll
  for (int j = 0; j < Tile::kWarpPixels / 16; ++j) inside[j] = taps_inside(shape, first + own_pixel + j * 16);

  for (int i = threadIdx.x; i < kConvZeroRows * kConvChunks; i += kConvThreads) {
    *reinterpret_cast<uint4*>(conv_shared + zero_row * kConvRowBytes + i * 16) = make_uint4(0, 0, 0, 0);
  }
#pragma unroll
  for (int slice = 0; slice < kConvStages - 1; ++slice) fetch(slice);

  ConvSums<Tile> sums = {};
  int slice = 0;
  for (int block = 0; block < depth; ++block) {
    if (block > 0) __syncthreads();  // every warp has left the window
    fill_window<T, kConvThreads, Tile::kAnyPlane>(conv_shared, x, shape, window, access, first, block * kConvDepth);
    for (int tap = 0; tap < taps; ++tap, ++slice) {
      const int down = shape.side == 1 ? 0 : tap / 3 - 1;
      const int right = shape.side == 1 ? 0 : tap % 3 - 1;
      const int from = tap_row(shape, window, first, down, right);
      uint32_t pixel_lanes[Tile::kWarpPixels / 16];
#pragma unroll
      for (int j = 0; j < Tile::kWarpPixels / 16; ++j) {
        const int seen = from + own_pixel + j * 16;
        const int row = inside[j] >> tap & 1 ? seen : zero_row + seen % 8;
        pixel_lanes[j] = shared_address(conv_shared) + conv_swizzled(row, own_chunk);
      }
      const uint32_t stage_lane = weight_lane + slice % kConvStages * kConvTapBytes;
      wait_copies<kConvStages - 2>();
      __syncthreads();
      fetch(slice + kConvStages - 1);  // over the slice before this one, which every warp left before the barrier
      multiply_slice<T, Tile>(sums, stage_lane, pixel_lanes);
    }
  }
  if constexpr (Tile::kAnyPlane) {
    if (!by_four) return store_by_one<T, Tile>(out, shape, first_output + warp_output, first + warp_pixel, sums);
  }
  store_by_four<T, Tile>(out, shape, first_output + warp_output, first + warp_pixel, sums);
}

}  // namespace groundspeed
