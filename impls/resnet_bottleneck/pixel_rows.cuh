// Pixels that follow each other, as rows of 64 channels in a ring in shared memory.
//
// Rows are written by eights that begin at a multiple of eight, and read, for a tap, by fours of pairs eight rows apart
// that begin anywhere (own_pixel in block_inner.cuh). The place of a chunk in its row is such that either covers all 32
// banks: by the row's last three bits, so that eights differ, and twice the two bits above, so that pairs do. The ring
// is a multiple of 32 rows, which makes that hold across its end.
#pragma once

#include "../_cuda/conv_fill.cuh"

namespace groundspeed {

constexpr int kRingRows = 32;  // a ring has a multiple of them

__device__ __forceinline__ int ring_places(int row) { return (row ^ (row >> 2 & 6)) & 7; }

__device__ __forceinline__ uint32_t ring_swizzled(int row, int chunk) {
  return row * kConvRowBytes + (chunk ^ ring_places(row)) * 16;
}

// `row` is less than a ring away from the ring.
__device__ __forceinline__ int ring_wrapped(int row, int rows) {
  return row < 0 ? row + rows : row >= rows ? row - rows : row;
}

}  // namespace groundspeed
