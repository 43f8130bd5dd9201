// A batch of matrices transposed by 32 × 32 tiles through shared memory: reads and writes are both coalesced.
//
// A warp reads rows of the tile and writes its columns. Without padding a column's elements lie 32 apart, all in one
// bank of float32, and a warp takes 32 turns; with one element of padding they lie in 32 different banks.
#pragma once

#include "elementwise.cuh"

namespace groundspeed {

constexpr int kTransposeTile = 32;
constexpr int kTransposeRows = 8;  // threads down a tile: each moves four elements

// The bits of an element, which is all that moving it needs.
template <typename T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>;

// A matrix of a batch and a tile in it, from a linear block index: neighbours lie side by side along the columns.
struct TransposeTile {
  int64_t start, row, column;
};

__device__ __forceinline__ TransposeTile tile_of(int64_t block, int64_t rows, int64_t columns, int size) {
  const int64_t across = ceil_div(columns, size), down = ceil_div(rows, size);
  const int64_t in_matrix = block % (across * down);
  return {block / (across * down) * rows * columns, in_matrix / across * size, in_matrix % across * size};
}

// x [batches, rows, columns] to y [batches, columns, rows].
template <typename Word, int kPad>
__global__ void __launch_bounds__(kTransposeTile* kTransposeRows)
    transpose_tile(const Word* __restrict__ x, Word* __restrict__ y, int64_t rows, int64_t columns) {
  __shared__ Word tile[kTransposeTile][kTransposeTile + kPad];
  const TransposeTile at = tile_of(blockIdx.x, rows, columns, kTransposeTile);
  const int across = threadIdx.x % kTransposeTile, down = threadIdx.x / kTransposeTile;
#pragma unroll
  for (int i = down; i < kTransposeTile; i += kTransposeRows) {
    const int64_t row = at.row + i, column = at.column + across;
    if (row < rows && column < columns) tile[i][across] = x[at.start + row * columns + column];
  }
  __syncthreads();
#pragma unroll
  for (int i = down; i < kTransposeTile; i += kTransposeRows) {
    const int64_t row = at.row + across, column = at.column + i;
    if (row < rows && column < columns) y[at.start + column * rows + row] = tile[across][i];
  }
}

inline unsigned int transpose_grid(int64_t batches, int64_t rows, int64_t columns, int size) {
  return covering_grid(batches * ceil_div(rows, size) * ceil_div(columns, size), 1);
}

template <int kPad, typename Word>
void launch_transpose_tile(const Word* x, Word* y, int64_t batches, int64_t rows, int64_t columns,
                           cudaStream_t stream) {
  const unsigned int grid = transpose_grid(batches, rows, columns, kTransposeTile);
  transpose_tile<Word, kPad><<<grid, kTransposeTile * kTransposeRows, 0, stream>>>(x, y, rows, columns);
}

}  // namespace groundspeed
