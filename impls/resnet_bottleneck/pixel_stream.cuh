// Planes of 16-bit pixels, streamed into shared memory by a warp for itself: 32 pixels of 16 channels at a time.
//
// A slice lies as in global memory, a row of 64 bytes a channel; ldmatrix.trans makes fragments of it whose rows are
// pixels, so that nothing is turned around in registers. A warp needs none of the others for that: it waits for its
// own copies alone, and warps may be apart by most of a tile.
#pragma once

#include "../_cuda/conv_window.cuh"
#include "../_cuda/mma.cuh"

namespace groundspeed {

constexpr int kStreamPixels = 32;    // of a slice
constexpr int kStreamChannels = 16;  // the k of one mma
constexpr int kStreamStages = 5;
constexpr int kStreamRowBytes = kStreamPixels * 2;
constexpr int kStreamStageBytes = kStreamChannels * kStreamRowBytes;
constexpr int kStreamBytes = kStreamStages * kStreamStageBytes;  // of a warp

// Rows 0, 2, 4, 6 of eight would share their banks.
__device__ __forceinline__ uint32_t stream_swizzled(int row, int chunk) {
  return row * kStreamRowBytes + (chunk ^ row / 2 % 4) * 16;
}

// All channels of 32 pixels, then of the 32 that lie `step` further, and so on. Planes are whole groups of eight pixels
// at multiples of 16 bytes; pixels before the first image or beyond the last, and channels beyond the last, are zeros.
template <typename T>
class PixelStream {
 public:
  // `shape` is of the images x, `first` a multiple of kPixelGroup; channels are rounded up to `padded`.
  __device__ PixelStream(const T* x, const ConvShape& shape, int padded, uint32_t stages, int first, int step,
                         int steps)
      : x_(x), shape_(shape), step_(step), padded_(padded), left_(steps * (padded / kStreamChannels)), stages_(stages),
        eight_(8 * static_cast<int64_t>(shape.plane())) {
    const int lane = threadIdx.x % 32;
    into_ = stream_swizzled(lane / 4, lane % 4);
    // Fragments A: lanes 0 to 15 name the first eight channels, by eights of pixels, lanes 16 to 31 the second eight.
    from_ = stream_swizzled(lane / 16 * 8 + lane % 8, lane / 8 % 2);
    pixel_ = first + lane % 4 * kPixelGroup;
    begin_pixels();
  }

  // Starts to bring the next slice, in a group of copies of its own: an empty one after the last slice.
  __device__ void fetch() {
    if (left_ > 0) {
      const uint32_t stage = stages_ + to_ * kStreamStageBytes + into_;
      copy_async16(stage, source_, channel_ < channels_);
      copy_async16(stage + 8 * kStreamRowBytes, source_ + eight_, channel_ + 8 < channels_);
      --left_;
      to_ = to_ + 1 == kStreamStages ? 0 : to_ + 1;
      channel_ += kStreamChannels;
      source_ += 2 * eight_;
      if (channel_ >= padded_) {
        pixel_ += step_;
        begin_pixels();
      }
    }
    commit_copies();
  }

  // The fragments A of the next slice, which has arrived: pixels 0 to 15 and 16 to 31.
  __device__ void load(uint32_t (&fragments)[2][4]) {
    const uint32_t stage = stages_ + taken_ * kStreamStageBytes + from_;
    load_matrices_transposed(fragments[0], stage);
    load_matrices_transposed(fragments[1], stage ^ 32);
    taken_ = taken_ + 1 == kStreamStages ? 0 : taken_ + 1;
  }

 private:
  __device__ void begin_pixels() {
    const bool exists = pixel_ >= 0 && pixel_ < shape_.pixels();
    channel_ = threadIdx.x % 32 / 4;
    channels_ = exists ? shape_.channels : 0;
    source_ = x_ + (exists ? pixel_offset(shape_, shape_.channels, pixel_) : 0) + channel_ * (eight_ / 8);
  }

  const T* x_;
  ConvShape shape_;
  int step_;
  int padded_;
  int left_;  // slices
  uint32_t stages_;
  uint32_t into_;  // a stage, where this lane copies
  uint32_t from_;  // a stage, where it names a row of a matrix
  int to_ = 0;     // the stage that is filled next
  int taken_ = 0;  // the stage that is read next
  int pixel_;
  int channel_;
  int channels_;     // of this pixel, 0 where it does not exist
  int64_t eight_;    // elements from a plane to the eighth after it
  const T* source_;  // this pixel and channel, which may not exist: then it is not read
};

}  // namespace groundspeed
