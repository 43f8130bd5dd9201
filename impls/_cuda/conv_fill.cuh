// Planes of 16-bit pixels [N, C, H, W] into shared memory as rows of 64 channels, a row a pixel.
//
// Tensor-core fragments want the channels of a pixel side by side, and only then are the taps of a 3 × 3 kernel mere
// steps from row to row. A thread takes 8 channels of 8 pixels, 16 bytes of each plane, and turns them around in
// registers: 32 byte permutations for 64 elements, which 9 taps times 64 outputs then use.
#pragma once

#include "conv_window.cuh"
#include "float_pack.cuh"

namespace groundspeed {

constexpr int kConvDepth = 64;                      // channels in a row of shared memory
constexpr int kConvRowBytes = kConvDepth * 2;
constexpr int kConvChunks = kConvRowBytes / 16;     // of 8 channels

// The place of a chunk in its row: eight rows of one chunk, which is what ldmatrix reads at a time and what the eight
// threads of a group write, cover all 32 banks.
__device__ __forceinline__ uint32_t conv_swizzled(int row, int chunk) {
  return row * kConvRowBytes + (chunk ^ (row % 8)) * 16;
}

// How many neighbouring pixels of a plane can be read at once whatever multiple of them a tile starts at.
enum class PlaneAccess { kEight, kFour, kOne };

template <typename T>
PlaneAccess plane_access(const ConvShape& shape, const T* x) {
  const auto address = reinterpret_cast<std::uintptr_t>(x);
  if (shape.plane() % 8 == 0 && address % 16 == 0) return PlaneAccess::kEight;
  return shape.plane() % 4 == 0 && address % 8 == 0 ? PlaneAccess::kFour : PlaneAccess::kOne;
}

// Eight pixels of eight planes: lines[c] are the pixels of channel c, and afterwards lines[p] the channels of pixel p.
__device__ __forceinline__ void turn_around(uint4 (&lines)[8]) {
  uint32_t words[8][4];
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    words[c][0] = lines[c].x;
    words[c][1] = lines[c].y;
    words[c][2] = lines[c].z;
    words[c][3] = lines[c].w;
  }
#pragma unroll
  for (int p = 0; p < 8; ++p) {
    const uint32_t half = p % 2 == 0 ? 0x5410 : 0x7632;
    lines[p] = make_uint4(__byte_perm(words[0][p / 2], words[1][p / 2], half),
                          __byte_perm(words[2][p / 2], words[3][p / 2], half),
                          __byte_perm(words[4][p / 2], words[5][p / 2], half),
                          __byte_perm(words[6][p / 2], words[7][p / 2], half));
  }
}

// Eight pixels from `pixel` on, of eight channels from `channel` on; zeros for what does not exist. PlaneAccess::kOne
// needs kByOne.
template <typename T, bool kByOne>
__device__ __forceinline__ void read_planes(uint4 (&lines)[8], const T* x, const ConvShape& shape, PlaneAccess access,
                                            int pixel, int channel) {
  const auto exists = [&](int at) { return at >= 0 && at < shape.pixels(); };
  const int64_t plane = shape.plane();
  if (access == PlaneAccess::kEight) {
    const T* place = x + (exists(pixel) ? pixel_offset(shape, shape.channels, pixel) : 0) + channel * plane;
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const bool inside = exists(pixel) && channel + c < shape.channels;
      lines[c] = inside ? *reinterpret_cast<const uint4*>(place + c * plane) : make_uint4(0, 0, 0, 0);
    }
    return;
  }
  if (access == PlaneAccess::kFour) {
    const int next = pixel + 4;
    const T* left = x + (exists(pixel) ? pixel_offset(shape, shape.channels, pixel) : 0) + channel * plane;
    const T* right = x + (exists(next) ? pixel_offset(shape, shape.channels, next) : 0) + channel * plane;
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const bool inside = channel + c < shape.channels;
      const uint2 none = make_uint2(0, 0);
      const uint2 low = inside && exists(pixel) ? *reinterpret_cast<const uint2*>(left + c * plane) : none;
      const uint2 high = inside && exists(next) ? *reinterpret_cast<const uint2*>(right + c * plane) : none;
      lines[c] = make_uint4(low.x, low.y, high.x, high.y);
    }
    return;
  }
  if constexpr (kByOne) {
    FloatPack<T> packs[8];
#pragma unroll
    for (int c = 0; c < 8; ++c) packs[c] = filled_pack<T>(0.0f);
#pragma unroll
    for (int p = 0; p < 8; ++p) {
      if (!exists(pixel + p)) continue;
      const T* place = x + pixel_offset(shape, shape.channels, pixel + p) + channel * plane;
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        if (channel + c < shape.channels) packs[c].lanes[p] = place[c * plane];
      }
    }
#pragma unroll
    for (int c = 0; c < 8; ++c) lines[c] = *reinterpret_cast<const uint4*>(&packs[c]);
  }
}

// Fills all rows of a window with channels `channel` to `channel` + 63, by kThreads threads.
template <typename T, int kThreads, bool kByOne>
__device__ __forceinline__ void fill_window(unsigned char* rows, const T* x, const ConvShape& shape,
                                            const ConvWindow& window, PlaneAccess access, int first, int channel) {
  static_assert(kThreads % kConvChunks == 0 && kPixelGroup == 8);
  const int chunk = threadIdx.x % kConvChunks;
#pragma unroll 1  // 64 registers a turn, beside the accumulators
  for (int group = threadIdx.x / kConvChunks; group < window.rows() / 8; group += kThreads / kConvChunks) {
    const int row = group * 8;
    const int run = row / window.rows_each;
    const int pixel = run_start(shape, window, first, run) + row - run * window.rows_each;
    uint4 lines[8];
    read_planes<T, kByOne>(lines, x, shape, access, pixel, channel + chunk * 8);
    turn_around(lines);
#pragma unroll
    for (int p = 0; p < 8; ++p) *reinterpret_cast<uint4*>(rows + conv_swizzled(row + p, chunk)) = lines[p];
  }
}

}  // namespace groundspeed
