// A bottleneck block in one kernel for up to 64 inner channels of 16 bits: what lies between its convolutions stays in
// shared memory and registers.
//
// A thread block stays on its multiprocessor with all weights in shared memory, and walks down consecutive tiles of 256
// pixels, a warp 32 of each. The rows of 64 channels that the first convolution leaves lie in a ring (pixel_rows.cuh).
// It is computed for pixels ahead of the tile, as far as the taps reach, once for each pixel: what the taps need from
// before the tile is still there. For a tile a warp
//
//   filters: the 3 × 3 convolution, whose taps are other rows of the ring (block_inner.cuh),
//   expands: what that leaves in its registers, adds the residual and stores (block_expand.cuh), and
//   reduces: the next pixels, streamed from x (pixel_stream.cuh). Their sums wait in registers until no warp reads the
//            rows of the ring that they replace.
//
// Half of the warps expand first and half reduce first, so that of two that share tensor cores one multiplies while the
// other moves its results.
#pragma once

#include "block_expand.cuh"

namespace groundspeed {

// Starts to bring so many rows of packed weights, all threads together.
template <typename T>
__device__ __forceinline__ void fetch_weights(uint32_t destination, const T* source, int rows) {
  for (int i = threadIdx.x; i < rows * kConvChunks; i += kBlockThreads) {
    copy_async16(destination + conv_swizzled(i / kConvChunks, i % kConvChunks), source + i * 8, true);
  }
}

// Biases of all three convolutions, each padded with zeros to a multiple of 64.
template <typename T>
__device__ __forceinline__ void fill_biases(float* biases, const BlockPlan& plan, const BlockOperands<T>& operands) {
  for (int i = threadIdx.x; i < plan.biases(); i += kBlockThreads) {
    const int channel = i < 2 * kInner ? i % kInner : i - 2 * kInner;
    const float* inner = i < kInner ? operands.reduce_bias : operands.spatial_bias;
    const float* bias = i < 2 * kInner ? inner : operands.expand_bias;
    biases[i] = channel < (i < 2 * kInner ? plan.inner.channels : plan.wide.channels) ? bias[channel] : 0.0f;
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads, 1) bottleneck_block_kernel(BlockOperands<T> operands, BlockPlan plan) {
  extern __shared__ __align__(128) unsigned char block_shared[];
  unsigned char* rows = block_shared + plan.weight_bytes();
  unsigned char* stages = rows + (plan.ring + kZeroRows) * kConvRowBytes;
  float* biases = reinterpret_cast<float*>(stages + kBlockWarps * kStreamBytes);
  const uint32_t weights = shared_address(block_shared);

  const int64_t tiles = plan.tiles;
  const int begin = static_cast<int>(tiles * blockIdx.x / gridDim.x);
  const int count = static_cast<int>(tiles * (blockIdx.x + 1) / gridDim.x) - begin;
  const int lane = threadIdx.x % 32;
  const int warp_pixel = threadIdx.x / 32 * kStreamPixels;
  // Of weights as columns, lanes 0 to 15 name the first eight outputs, by eights of channels, lanes 16 to 31 the second
  // eight; of weights as rows, lanes 0 to 15 name the left two 8 x 8 matrices, lanes 16 to 31 the right two.
  const uint32_t column_lane = weights + conv_swizzled(lane / 16 * 8 + lane % 8, lane / 8 % 2);
  const uint32_t row_lane = weights + (plan.slabs + kTaps) * kSlabBytes + conv_swizzled(lane % 16, lane / 16);

  fetch_weights(weights, operands.reduce, plan.slabs * kInner);
  commit_copies();
  PixelStream<T> stream(operands.x, plan.wide, plan.slabs * kInner,
                        shared_address(stages) + threadIdx.x / 32 * kStreamBytes,
                        begin * kTilePixels + plan.ahead - plan.before * kTilePixels + warp_pixel, kTilePixels,
                        plan.before + count);
#pragma unroll 1
  for (int stage = 0; stage < kStreamStages; ++stage) stream.fetch();
  // In the group of the slice that is fetched next: waited for well before the first tile.
  fetch_weights(weights + plan.slabs * kSlabBytes, operands.spatial, kTaps * kInner);
  fetch_weights(weights + (plan.slabs + kTaps) * kSlabBytes, operands.expand, plan.slabs * kInner);
  fill_biases(biases, plan, operands);
  for (int i = threadIdx.x; i < kZeroRows * kConvChunks; i += kBlockThreads) {
    *reinterpret_cast<uint4*>(rows + plan.ring * kConvRowBytes + i * 16) = make_uint4(0, 0, 0, 0);
  }
  wait_copies<kStreamStages>();  // of the weights that come first
  __syncthreads();

  const bool expands_first = threadIdx.x < kBlockThreads / 2;
  int reduced = 0;  // the row of the ring in which the next pixels begin
#pragma unroll 1
  for (int step = -plan.before - 1; step < count; ++step) {
    // Expands tile `step`, where it is one, and reduces the pixels of the step after it, where there is one.
    const bool whole = step >= 0, more = step + 1 < count;
    const int first = (begin + step) * kTilePixels;
    LanePlanes<T> planes(operands, plan.wide, whole ? first : -1);
    PixelColumns columns;
    Residuals residuals;
    WarpSums sums;
    if (whole) {
      const int from = ring_wrapped(reduced - kTilePixels - plan.ahead, plan.ring);
      load_residuals(residuals, planes);
      convolve_tile<T>(columns, plan, shared_address(rows), from, first, column_lane + plan.slabs * kSlabBytes,
                       biases + kInner);
    }
#pragma unroll 1
    for (int turn = 0; turn < 2; ++turn) {
      if ((turn == 0) == expands_first) {
        if (whole) expand_tile<T>(columns, planes, residuals, row_lane, biases + 2 * kInner + lane / 4, plan.slabs);
      } else if (more) {
        reduce_pixels<T>(sums, stream, column_lane, plan.slabs);
      }
    }
    if (!more) break;
    __syncthreads();  // no warp reads the tile's rows any more
    write_rows<T>(rows, plan.ring, reduced + warp_pixel, sums, biases);
    reduced = ring_wrapped(reduced + kTilePixels, plan.ring);
    __syncthreads();
  }
}

}  // namespace groundspeed
