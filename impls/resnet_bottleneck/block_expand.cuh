// The last convolution of a bottleneck block, a warp's part of a tile: outputs are rows of the product, its 32 pixels
// columns. The accumulators of the convolution before it, rounded, are fragments B as they are.
#pragma once

#include "block_inner.cuh"

namespace groundspeed {

constexpr int kRowTile = 16;                   // outputs of one mma
constexpr int kResiduals = kInner / kRowTile;  // tiles whose residuals are on their way to a warp
static_assert(kResiduals % 2 == 0);            // two sets of weights take turns

using RowSums = float[4][4];  // of 16 outputs, a fragment C for every eight pixels
using RowWeights = uint32_t[kInner / 16][4];

// The eight neighbouring pixels of a lane in every eighth plane, from its quad's on: read for the residual, then
// written. The pixels are such that a lane has eight of an output in its accumulators (own_pixel in block_inner.cuh).
template <typename T>
class LanePlanes {
 public:
  __device__ LanePlanes(const BlockOperands<T>& operands, const ConvShape& shape, int first) {
    const int lane = threadIdx.x % 32;
    const int pixel = first + threadIdx.x / 32 * kStreamPixels + lane % 4 * kPixelGroup;
    const bool exists = first >= 0 && pixel < shape.pixels();
    const int64_t plane = shape.plane();
    const int64_t offset = (exists ? pixel_offset(shape, shape.channels, pixel) : 0) + lane / 4 * plane;
    step_ = 8 * plane;
    in_ = operands.x + offset;
    out_ = operands.y + offset;
    unread_ = unwritten_ = exists ? shape.channels - lane / 4 : 0;
  }

  // Of the next eight outputs. x is not needed in L2 after that.
  __device__ uint4 next_residual() {
    const bool exists = unread_ > 0;
    const T* place = in_;
    in_ += step_;
    unread_ -= 8;
    return exists ? __ldcs(reinterpret_cast<const uint4*>(place)) : make_uint4(0, 0, 0, 0);
  }

  // To the next eight outputs. What is written is the first to leave L2, which holds x for its second reading.
  __device__ void store_next(uint4 values) {
    if (unwritten_ > 0) __stcs(reinterpret_cast<uint4*>(out_), values);
    out_ += step_;
    unwritten_ -= 8;
  }

 private:
  int64_t step_;
  const T* in_;
  T* out_;
  int unread_;  // outputs, this lane's among them
  int unwritten_;
};

using Residuals = uint4[kResiduals][2];

template <typename T>
__device__ __forceinline__ void load_residuals(Residuals& residuals, LanePlanes<T>& planes) {
#pragma unroll
  for (int i = 0; i < kResiduals * 2; ++i) residuals[i / 2][i % 2] = planes.next_residual();
}

// Eight pixels of one output: rows `half` of the fragments C.
template <typename T>
__device__ __forceinline__ uint4 finished(const RowSums& sums, int half, float bias, uint4 residual) {
  const FloatPack<T> added = *reinterpret_cast<const FloatPack<T>*>(&residual);
  FloatPack<T> result;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    result.lanes[i] = from_float<T>(rectified(sums[i / 2][half * 2 + i % 2] + bias + to_float(added.lanes[i])));
  }
  return *reinterpret_cast<const uint4*>(&result);
}

__device__ __forceinline__ void load_row_weights(RowWeights& weights, uint32_t lane_address) {
#pragma unroll
  for (int step = 0; step < kInner / 16; ++step) load_matrices(weights[step], lane_address ^ step * 32);
}

// `weight_lane` is the address at which this lane names a row of the first 16 outputs, `bias` points to its quad's. The
// weights of the next outputs are on their way while some are multiplied.
template <typename T>
__device__ __forceinline__ void expand_tile(const PixelColumns& columns, LanePlanes<T>& planes, Residuals& residuals,
                                            uint32_t weight_lane, const float* bias, int slabs) {
  RowWeights weights[2];
  load_row_weights(weights[0], weight_lane);
#pragma unroll 1
  for (int slab = 0; slab < slabs; ++slab) {
#pragma unroll
    for (int tile = 0; tile < kResiduals; ++tile) {
      weight_lane += kRowTile * kConvRowBytes;
      if (tile + 1 < kResiduals || slab + 1 < slabs) load_row_weights(weights[(tile + 1) % 2], weight_lane);
      RowSums sums = {};
#pragma unroll
      for (int step = 0; step < kInner / 16; ++step) {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          multiply_accumulate<T>(sums[q], weights[tile % 2][step], columns[q][step][0], columns[q][step][1]);
        }
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        planes.store_next(finished<T>(sums, half, bias[half * 8], residuals[tile][half]));
        residuals[tile][half] = planes.next_residual();
      }
      bias += kRowTile;
    }
  }
}

}  // namespace groundspeed
