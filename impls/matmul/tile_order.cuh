// In which order blocks take the tiles of C: groups of rows, so that blocks running together share slices in L2.
#pragma once

#include <cstdint>

namespace groundspeed {

constexpr int kGroupRows = 8;

struct TilePlace {
  int row;     // which row of tiles
  int column;  // which column of tiles
};

// Walks down kGroupRows tiles, then one tile to the right, and so on: 8 × 16 tiles touch 24 slices where a plain row
// of 128 tiles would touch 129.
__host__ __device__ inline TilePlace tile_place(int64_t index, int tiles_m, int tiles_n) {
  const int64_t group_size = static_cast<int64_t>(kGroupRows) * tiles_n;
  const int first_row = static_cast<int>(index / group_size) * kGroupRows;
  const int rows = tiles_m - first_row < kGroupRows ? tiles_m - first_row : kGroupRows;
  const int in_group = static_cast<int>(index % group_size);
  return {first_row + in_group % rows, in_group / rows};
}

}  // namespace groundspeed
