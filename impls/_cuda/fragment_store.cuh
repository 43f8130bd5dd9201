// From the accumulators of 16-bit tensor-core products to global memory in full 32-byte sectors.
//
// In a row of an accumulator a quad of lanes (t = lane % 4) holds columns 2t and 2t + 1 of each 8-column tile: stored as
// they lie, 4 bytes a lane, a quad fills half a sector. Lanes of a pair swap halves of two neighbouring tiles first;
// then an even lane holds four columns of the left tile and an odd one four of the right: 8 bytes a lane, a whole sector.
#pragma once

#include "float_pack.cuh"

namespace groundspeed {

template <typename T>
__device__ __forceinline__ uint32_t pack_pair(float first, float second) {
  struct alignas(4) Pair {
    T lanes[2];
  };
  const Pair pair = {from_float<T>(first), from_float<T>(second)};
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// Stores the quad's part of one row of two neighbouring tiles. `row` points to the first column of the left tile, of
// which `left` columns from there on exist, a multiple of 4; `row` is 8-byte aligned. The whole warp must call it; a row
// that does not exist has left = 0.
template <typename T>
__device__ __forceinline__ void store_two_tiles(T* row, int left, float left0, float left1, float right0,
                                                float right1) {
  const int t = threadIdx.x % 4;
  const bool odd = t % 2 != 0;
  const uint32_t mine_left = pack_pair<T>(left0, left1);
  const uint32_t mine_right = pack_pair<T>(right0, right1);
  const uint32_t other = __shfl_xor_sync(0xffffffffu, odd ? mine_left : mine_right, 1);
  const uint2 four = odd ? make_uint2(other, mine_right) : make_uint2(mine_left, other);
  const int column = (odd ? 8 : 0) + t / 2 * 4;
  if (column < left) *reinterpret_cast<uint2*>(row + column) = four;
}

}  // namespace groundspeed
