// Which pixels a tile of a convolution needs in shared memory, and where they lie there.
//
// Images [N, C, H, W] are convolved with stride 1 and "same" padding, by kernels of side 1 or 3. Pixels of all images
// are numbered in one sequence, n·H·W + h·W + w, and a tile owns consecutive ones. The pixel below lies W further on
// whatever the tile, so one run of pixels, a window, serves all nine taps, each at its own offset. A neighbour beyond
// the edge of its image is not in the window: whoever reads for it takes a zero from elsewhere (see taps_inside).
#pragma once

#include <cuda_runtime.h>
#include <cstdint>

namespace groundspeed {

struct ConvShape {
  int images;
  int channels;
  int height;
  int width;
  int outputs;  // channels of the result
  int side;     // of the kernel: 1 or 3

  __host__ __device__ int plane() const { return height * width; }
  __host__ __device__ int pixels() const { return images * plane(); }
  __host__ __device__ int taps() const { return side * side; }
  __host__ __device__ int reach() const { return side / 2; }
};

constexpr int kPixelGroup = 8;  // windows begin and end at multiples of it: 16 bytes of a 16-bit plane

__host__ __device__ constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }

// Rows of shared memory, one a pixel. Images so wide that the rows between the taps' would not be worth holding get
// three runs, one a row of taps; others one.
struct ConvWindow {
  int runs;
  int rows_each;  // a multiple of kPixelGroup

  __host__ __device__ int rows() const { return runs * rows_each; }
};

__host__ __device__ inline ConvWindow window_of(const ConvShape& shape, int tile) {
  if (shape.side == 1) return {1, tile};
  const int slack = kPixelGroup - 1;  // a run begins up to this many pixels early
  const int joined = round_up(tile + 2 * (shape.width + 1) + slack, kPixelGroup);
  const int split = round_up(tile + 2 + slack, kPixelGroup);
  return joined <= 3 * split ? ConvWindow{1, joined} : ConvWindow{3, split};
}

// The pixel in the first row of a run, for the tile that begins at pixel `first`, a multiple of kPixelGroup. It may be
// negative: before the first image.
__device__ __forceinline__ int run_start(const ConvShape& shape, const ConvWindow& window, int first, int run) {
  const int from = window.runs == 1 ? first - shape.reach() * (shape.width + 1) : first + (run - 1) * shape.width - 1;
  return from & ~(kPixelGroup - 1);
}

// The row of the window that holds what tap (down, right) sees of the tile's first pixel; -1 <= down, right <= 1.
__device__ __forceinline__ int tap_row(const ConvShape& shape, const ConvWindow& window, int first, int down,
                                       int right) {
  const int run = window.runs == 1 ? 0 : down + 1;
  return run * window.rows_each + first + down * shape.width + right - run_start(shape, window, first, run);
}

// Bit t is set where tap t of this pixel lies inside its image, taps counted row by row. No bit is set for a pixel
// beyond the last image.
__device__ __forceinline__ uint32_t taps_inside(const ConvShape& shape, int pixel) {
  if (pixel >= shape.pixels()) return 0;
  if (shape.side == 1) return 1;
  const int in_plane = pixel % shape.plane();
  const int row = in_plane / shape.width;
  const int column = in_plane - row * shape.width;
  uint32_t inside = 0b111'111'111;
  if (row == 0) inside &= 0b111'111'000;
  if (row == shape.height - 1) inside &= 0b000'111'111;
  if (column == 0) inside &= 0b110'110'110;
  if (column == shape.width - 1) inside &= 0b011'011'011;
  return inside;
}

// Offset of a pixel in an array [images, channels, height, width], in elements, of channel 0.
__device__ __forceinline__ int64_t pixel_offset(const ConvShape& shape, int channels, int pixel) {
  const int image = pixel / shape.plane();
  return static_cast<int64_t>(image) * channels * shape.plane() + (pixel - image * shape.plane());
}

}  // namespace groundspeed
