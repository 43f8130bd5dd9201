// A batch of matrices transposed by 64 × 64 tiles, 16 bytes an access of global memory both ways.
//
// Shared memory is used by 32-bit words whatever the element is: of 16-bit elements, a thread loads two rows and joins
// what lies one above the other into a word, which is then a pair of neighbours of the transposed row. The pitch is
// odd, so that a warp's words fall two to a bank at most. Shapes whose rows or columns are no whole packs, and
// misaligned pointers, take the 32 × 32 tiles.
#pragma once

#include "transpose_tile.cuh"

namespace groundspeed {

constexpr int kWideTile = 64;
constexpr int kWideBlock = 256;

template <typename Word>
struct WideTile {
  static constexpr int kLanes = FloatPack<Word>::kLanes;
  static constexpr int kPacks = kWideTile / kLanes;    // 16-byte packs along a row of the tile
  static constexpr int kPerWord = 4 / sizeof(Word);    // elements a word of shared memory
  static constexpr int kWords = kWideTile / kPerWord;  // words along a row of the transposed tile
  static constexpr int kPitch = kWords + 1;
  static constexpr int kLoads = kWideTile / kPerWord * kPacks / kWideBlock;
  static constexpr int kStores = kWideTile * kPacks / kWideBlock;
};

// Element `lane` of packs that lie one above the other, as one word.
__device__ __forceinline__ uint32_t joined(const FloatPack<uint32_t> (&packs)[1], int lane) {
  return packs[0].lanes[lane];
}

__device__ __forceinline__ uint32_t joined(const FloatPack<uint16_t> (&packs)[2], int lane) {
  return packs[0].lanes[lane] | static_cast<uint32_t>(packs[1].lanes[lane]) << 16;
}

template <typename Word>
__global__ void __launch_bounds__(kWideBlock)
    transpose_packs(const Word* __restrict__ x, Word* __restrict__ y, int64_t rows, int64_t columns) {
  using Tile = WideTile<Word>;
  __shared__ uint32_t tile[kWideTile * Tile::kPitch];
  const TransposeTile at = tile_of(blockIdx.x, rows, columns, kWideTile);
  FloatPack<Word> packs[Tile::kLoads][Tile::kPerWord];
#pragma unroll
  for (int i = 0; i < Tile::kLoads; ++i) {
    const int item = i * kWideBlock + threadIdx.x;
    const int64_t row = at.row + item / Tile::kPacks * Tile::kPerWord;
    const int64_t column = at.column + item % Tile::kPacks * Tile::kLanes;
#pragma unroll
    for (int k = 0; k < Tile::kPerWord; ++k) {
      if (row < rows && column < columns) packs[i][k] = load_pack(x + at.start + (row + k) * columns + column);
    }
  }
#pragma unroll
  for (int i = 0; i < Tile::kLoads; ++i) {
    const int item = i * kWideBlock + threadIdx.x;
    uint32_t* corner = tile + item % Tile::kPacks * Tile::kLanes * Tile::kPitch + item / Tile::kPacks;
#pragma unroll
    for (int lane = 0; lane < Tile::kLanes; ++lane) corner[lane * Tile::kPitch] = joined(packs[i], lane);
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < Tile::kStores; ++i) {
    const int item = i * kWideBlock + threadIdx.x;
    const int down = item / Tile::kPacks, across = item % Tile::kPacks;
    const uint32_t* words = tile + down * Tile::kPitch + across * 4;
    FloatPack<uint32_t> pack;
#pragma unroll
    for (int w = 0; w < 4; ++w) pack.lanes[w] = words[w];
    const int64_t row = at.row + across * Tile::kLanes, column = at.column + down;
    if (row < rows && column < columns) {
      store_pack(reinterpret_cast<uint32_t*>(y + at.start + column * rows + row), pack);
    }
  }
}

// x [batches, rows, columns] to y [batches, columns, rows].
template <typename Word>
void launch_transpose_packs(const Word* x, Word* y, int64_t batches, int64_t rows, int64_t columns,
                            cudaStream_t stream) {
  constexpr int kLanes = FloatPack<Word>::kLanes;
  if (rows % kLanes != 0 || columns % kLanes != 0 || !is_aligned16(x) || !is_aligned16(y)) {
    return launch_transpose_tile<1>(x, y, batches, rows, columns, stream);
  }
  transpose_packs<<<transpose_grid(batches, rows, columns, kWideTile), kWideBlock, 0, stream>>>(x, y, rows, columns);
}

}  // namespace groundspeed
