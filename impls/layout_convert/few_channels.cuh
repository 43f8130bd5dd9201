// Planes of few channels joined to pixels, or pixels parted into planes, through shared memory.
//
// Shared memory holds a run of pixels in NHWC order. The planes' side moves 16-byte packs of one channel and scatters
// or gathers their elements; the pixels' side moves the run as it lies, by packs too.
#pragma once

#include "../_cuda/elementwise.cuh"

namespace groundspeed {

constexpr int kMostChannels = 16;
constexpr int kPixelBlock = 256;
constexpr int kPixelRounds = 4;  // packs in flight a thread

template <typename Word>
constexpr int kRunElements = kPixelBlock * kPixelRounds * FloatPack<Word>::kLanes;

// Pixels of a run: whole packs of each channel, no more than shared memory holds.
template <typename Word>
__host__ __device__ int run_pixels(int channels) {
  constexpr int kLanes = FloatPack<Word>::kLanes;
  return kRunElements<Word> / channels / kLanes * kLanes;
}

// Calls body(round, channel, first pixel in the run) for each of this thread's packs of the planes' side.
template <typename Word, typename Body>
__device__ __forceinline__ void for_plane_packs(int pixels, int channels, Body&& body) {
  constexpr int kLanes = FloatPack<Word>::kLanes;
  const int packs = pixels / kLanes;
#pragma unroll
  for (int round = 0; round < kPixelRounds; ++round) {
    const int item = round * kPixelBlock + threadIdx.x;
    if (item < packs * channels) body(round, item / packs, item % packs * kLanes);
  }
}

// Calls body(round, first element in the run) for each of this thread's packs of the pixels' side.
template <typename Word, typename Body>
__device__ __forceinline__ void for_run_packs(int elements, Body&& body) {
#pragma unroll
  for (int round = 0; round < kPixelRounds; ++round) {
    const int element = (round * kPixelBlock + threadIdx.x) * FloatPack<Word>::kLanes;
    if (element < elements) body(round, element);
  }
}

template <typename Word, bool kToPixels>
__global__ void __launch_bounds__(kPixelBlock)
    convert_few_channels(const Word* __restrict__ x, Word* __restrict__ y, int64_t plane, int channels, int run) {
  constexpr int kLanes = FloatPack<Word>::kLanes;
  __shared__ alignas(kPackBytes) Word staged[kRunElements<Word>];
  const int64_t runs = ceil_div(plane, run);
  const int64_t image = blockIdx.x / runs * plane * channels, first = blockIdx.x % runs * run;
  const int pixels = static_cast<int>(plane - first < run ? plane - first : run);
  const int64_t run_start = image + first * channels, plane_start = image + first;
  FloatPack<Word> held[kPixelRounds];
  if constexpr (kToPixels) {
    for_plane_packs<Word>(pixels, channels, [&](int round, int channel, int pixel) {
      held[round] = load_pack(x + plane_start + channel * plane + pixel);
    });
    for_plane_packs<Word>(pixels, channels, [&](int round, int channel, int pixel) {
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) staged[(pixel + lane) * channels + channel] = held[round].lanes[lane];
    });
    __syncthreads();
    for_run_packs<Word>(pixels * channels, [&](int, int element) {
      store_pack(y + run_start + element, load_pack(staged + element));
    });
  } else {
    for_run_packs<Word>(pixels * channels, [&](int round, int element) {
      held[round] = load_pack(x + run_start + element);
    });
    for_run_packs<Word>(pixels * channels, [&](int round, int element) {
      *reinterpret_cast<FloatPack<Word>*>(staged + element) = held[round];
    });
    __syncthreads();
    for_plane_packs<Word>(pixels, channels, [&](int, int channel, int pixel) {
      FloatPack<Word> pack;
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) pack.lanes[lane] = staged[(pixel + lane) * channels + channel];
      store_pack(y + plane_start + channel * plane + pixel, pack);
    });
  }
}

// Whether the kernel covers these images: planes of whole packs, aligned pointers, few channels.
template <typename Word>
bool is_few_channels(const Word* x, const Word* y, int64_t plane, int64_t channels) {
  return channels <= kMostChannels && plane % FloatPack<Word>::kLanes == 0 && is_aligned16(x) && is_aligned16(y);
}

// x [images, rows, columns] to y [images, columns, rows], where rows are the channels if kToPixels, else columns are.
template <bool kToPixels, typename Word>
void launch_few_channels(const Word* x, Word* y, int64_t images, int64_t plane, int64_t channels,
                         cudaStream_t stream) {
  const int run = run_pixels<Word>(static_cast<int>(channels));
  const unsigned int grid = covering_grid(images * ceil_div(plane, run), 1);
  convert_few_channels<Word, kToPixels>
      <<<grid, kPixelBlock, 0, stream>>>(x, y, plane, static_cast<int>(channels), run);
}

}  // namespace groundspeed
