// What lies where in the shared memory of a bottleneck block, for up to 64 inner channels, and what it works on.
//
// In this order: weights of all three convolutions in slabs of 64 outputs by 64 channels, the ring of rows that the
// first convolution leaves, rows of zeros, every warp's slices of x, biases.
#pragma once

#include "pixel_rows.cuh"
#include "pixel_stream.cuh"

namespace groundspeed {

constexpr int kBlockWarps = 8;
constexpr int kBlockThreads = 32 * kBlockWarps;
constexpr int kTilePixels = kStreamPixels * kBlockWarps;
constexpr int kInner = kConvDepth;                  // channels between the convolutions, padded
constexpr int kSlabBytes = kInner * kConvRowBytes;  // weights of 64 outputs by 64 channels
constexpr int kTaps = 9;
constexpr int kZeroRows = 8;  // one for each place that the swizzle gives a row

constexpr int kMostSize = 1 << 16;  // far more than shared memory has room for, and no overflow

struct BlockPlan {
  ConvShape wide;   // of the first convolution
  ConvShape inner;  // of the 3 × 3
  int slabs;        // of 64 channels in x
  int ahead;        // pixels between a tile and what is reduced with it: whole groups, no fewer than the taps reach
  int before;       // tiles' worth of pixels that are reduced before the first tile's
  int ring;         // rows
  int tiles;

  __host__ __device__ int weight_bytes() const { return (2 * slabs + kTaps) * kSlabBytes; }
  __host__ __device__ int biases() const { return (2 + slabs) * kInner; }
  __host__ __device__ int shared_bytes() const {
    return weight_bytes() + (ring + kZeroRows) * kConvRowBytes + kBlockWarps * kStreamBytes +
           biases() * static_cast<int>(sizeof(float));
  }
};

// `wide` is of the first convolution, from E to C channels, neither its width nor E beyond kMostSize.
inline BlockPlan block_plan(const ConvShape& wide) {
  BlockPlan plan;
  const int reach = wide.width + 1;
  plan.wide = wide;
  plan.inner = {wide.images, wide.outputs, wide.height, wide.width, wide.outputs, 3};
  plan.slabs = (wide.channels + kInner - 1) / kInner;
  plan.ahead = round_up(reach, kPixelGroup);
  plan.before = (plan.ahead + reach + kTilePixels - 1) / kTilePixels;
  plan.ring = round_up(kTilePixels + reach + plan.ahead, kRingRows);
  plan.tiles = (wide.pixels() + kTilePixels - 1) / kTilePixels;
  return plan;
}

template <typename T>
struct BlockOperands {
  const T* x;
  const T* reduce;  // weights packed by conv_weights.py: slabs of 64 outputs by 64 channels
  const T* spatial;
  const T* expand;
  const float* reduce_bias;
  const float* spatial_bias;
  const float* expand_bias;
  T* y;
};

}  // namespace groundspeed
