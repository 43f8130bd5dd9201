// The two convolutions of a bottleneck block that end in its inner channels, a warp's part of a tile: 32 pixels as rows
// of the product, 64 outputs as its columns.
#pragma once

#include "../_cuda/fragment_store.cuh"
#include "block_plan.cuh"

namespace groundspeed {

// Of a warp: 32 pixels, in two fragments A of 16, by 64 outputs, in eight of 8.
using WarpSums = float[2][kInner / 8][4];

struct StepFragments {
  uint32_t pixels[2][4];
  uint32_t weights[kInner / 16][4];  // [j][0], [1]: the first eight of 16 outputs; [2], [3]: the second
};

__device__ __forceinline__ void load_slab_step(uint32_t (&weights)[kInner / 16][4], uint32_t lane_address) {
#pragma unroll
  for (int j = 0; j < kInner / 16; ++j) load_matrices(weights[j], lane_address + j * 16 * kConvRowBytes);
}

template <typename T>
__device__ __forceinline__ void multiply_step(WarpSums& sums, const StepFragments& now) {
#pragma unroll
  for (int j = 0; j < kInner / 8; ++j) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint32_t* weights = now.weights[j / 2] + j % 2 * 2;
      multiply_accumulate<T>(sums[i][j], now.pixels[i], weights[0], weights[1]);
    }
  }
}

__device__ __forceinline__ void clear(WarpSums& sums) {
#pragma unroll
  for (int i = 0; i < 2 * (kInner / 8) * 4; ++i) sums[i / 32][i / 4 % 8][i % 4] = 0.0f;
}

// `weight_lane` is the address at which this lane names a row of the first slab. The slice whose fragments are in
// registers gives its place to the one that is fetched: kStreamStages are on their way, then, before and after.
template <typename T>
__device__ __forceinline__ void reduce_pixels(WarpSums& sums, PixelStream<T>& stream, uint32_t weight_lane, int slabs) {
  constexpr int kSteps = kInner / kStreamChannels;
  clear(sums);
  StepFragments fragments[2];
  wait_copies<kStreamStages - 1>();
  __syncwarp();
  stream.load(fragments[0].pixels);
  load_slab_step(fragments[0].weights, weight_lane);
#pragma unroll 1
  for (int slab = 0; slab < slabs; ++slab) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const bool more = step + 1 < kSteps || slab + 1 < slabs;
      if (more) wait_copies<kStreamStages - 2>();
      __syncwarp();  // what other lanes brought is there, and all lanes have read the slice before it
      stream.fetch();
      if (more) {
        const uint32_t next = step + 1 < kSteps ? weight_lane ^ (step + 1) * 32 : weight_lane + kSlabBytes;
        stream.load(fragments[(step + 1) % 2].pixels);
        load_slab_step(fragments[(step + 1) % 2].weights, next);
      }
      multiply_step<T>(sums, fragments[step % 2]);
    }
    weight_lane += kSlabBytes;
  }
}

// max(value, 0), but NaN stays NaN.
__device__ __forceinline__ float rectified(float value) { return value < 0.0f ? 0.0f : value; }

// A warp's pixels as rows of the ring, from row `from` on: bias, ReLU and rounding.
template <typename T>
__device__ __forceinline__ void write_rows(unsigned char* rows, int ring, int from, const WarpSums& sums,
                                           const float* bias) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int part = 0; part < 4; ++part) {  // eight pixels each
    const int row = ring_wrapped(from + part * 8 + lane / 4, ring);
#pragma unroll
    for (int j = 0; j < kInner / 8; ++j) {
      const float2 added = *reinterpret_cast<const float2*>(bias + j * 8 + lane % 4 * 2);
      const float* pair = sums[part / 2][j] + part % 2 * 2;
      *reinterpret_cast<uint32_t*>(rows + ring_swizzled(row, j) + lane % 4 * 4) =
          pack_pair<T>(rectified(pair[0] + added.x), rectified(pair[1] + added.y));
    }
  }
}

// The pixel of a warp's 32 that is row `row` of its `half`-th eight in the first fragment A of the 3 × 3; in the second
// it is four further. With pixels as columns afterwards, the two that a lane has of each of four eights are then eight
// neighbours: 16 bytes of a plane, 64 bytes a quad of lanes, with no exchange between lanes.
__device__ __forceinline__ int own_pixel(int half, int row) { return row / 2 * 8 + half * 2 + row % 2; }

// Fragments B of a warp's pixels behind the 3 × 3: eight pixels [q] by 16 channels [step].
using PixelColumns = uint32_t[4][kInner / 16][2];

// `rows` is the ring's address, the tile begins in its row `from` and at pixel `first`.
template <typename T>
__device__ __forceinline__ void convolve_tile(PixelColumns& columns, const BlockPlan& plan, uint32_t rows, int from,
                                              int first, uint32_t weight_lane, const float* bias) {
  constexpr int kSteps = kInner / 16;
  const int lane = threadIdx.x % 32;
  const int own = threadIdx.x / 32 * kStreamPixels + own_pixel(lane / 8 % 2, lane % 8);
  const uint32_t inside[2] = {taps_inside(plan.inner, first + own), taps_inside(plan.inner, first + own + 4)};
  uint32_t lanes[2];  // where this lane names rows of the two fragments A
  const auto name_rows = [&](int tap) {
    const int shift = (tap / 3 - 1) * plan.inner.width + tap % 3 - 1;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int seen = ring_wrapped(from + own + i * 4 + shift, plan.ring);
      const int row = inside[i] >> tap & 1 ? seen : plan.ring + ring_places(seen);  // zeros, in the same banks
      lanes[i] = rows + row * kConvRowBytes + (lane / 16 ^ ring_places(seen)) * 16;
    }
  };
  WarpSums sums;
  clear(sums);
  StepFragments fragments[2];
  const auto load = [&](StepFragments& out, int step) {
    load_matrices(out.pixels[0], lanes[0] ^ step * 32);
    load_matrices(out.pixels[1], lanes[1] ^ step * 32);
    load_slab_step(out.weights, weight_lane ^ step * 32);
  };
  name_rows(0);
  load(fragments[0], 0);
#pragma unroll 1
  for (int tap = 0; tap < kTaps; ++tap) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step + 1 < kSteps) {
        load(fragments[(step + 1) % 2], step + 1);
      } else if (tap + 1 < kTaps) {
        name_rows(tap + 1);
        weight_lane += kSlabBytes;
        load(fragments[0], 0);
      }
      multiply_step<T>(sums, fragments[step % 2]);
    }
  }
#pragma unroll
  for (int j = 0; j < kInner / 8; ++j) {
    const float2 added = *reinterpret_cast<const float2*>(bias + j * 8 + lane % 4 * 2);
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const float* pair = sums[q / 2][j] + q % 2 * 2;
      columns[q][j / 2][j % 2] = pack_pair<T>(rectified(pair[0] + added.x), rectified(pair[1] + added.y));
    }
  }
}

}  // namespace groundspeed
