// Sums of rows or of chunks of rows, one block each: four 16-byte vectors in flight a thread.
#pragma once

#include "../_cuda/elementwise.cuh"
#include "../_cuda/row_block.cuh"

namespace groundspeed {

constexpr int kSumVectors = 4;  // in flight a thread
constexpr int kMostSumThreads = 512;

// This thread's share of the sum of `length` elements, by vectors. Each of its vectors in flight has a sum of its own:
// no addition waits for the one before, and the error grows more slowly.
template <typename T>
__device__ __forceinline__ float sum_by_packs(const T* __restrict__ x, int64_t length) {
  constexpr int kLanes = FloatPack<T>::kLanes;
  const int64_t step = static_cast<int64_t>(blockDim.x) * kLanes;
  float sums[kSumVectors] = {};
  const auto add = [&](int v, const FloatPack<T>& pack) {
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) sums[v] += to_float(pack.lanes[lane]);
  };
  int64_t at = static_cast<int64_t>(threadIdx.x) * kLanes;
#pragma unroll 1
  for (; at + (kSumVectors - 1) * step < length; at += kSumVectors * step) {
    FloatPack<T> packs[kSumVectors];
#pragma unroll
    for (int v = 0; v < kSumVectors; ++v) packs[v] = load_pack(x + at + v * step);
#pragma unroll
    for (int v = 0; v < kSumVectors; ++v) add(v, packs[v]);
  }
#pragma unroll 1
  for (; at < length; at += step) add(0, load_pack(x + at));
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <typename T>
__device__ __forceinline__ float sum_by_elements(const T* __restrict__ x, int64_t length) {
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < length; i += blockDim.x) sum += to_float(x[i]);
  return sum;
}

// Block b sums chunk b % chunks of row b / chunks and writes it to y[b].
template <typename T, typename Out>
__global__ void __launch_bounds__(kMostSumThreads)
    row_sum_chunks(const T* __restrict__ x, Out* __restrict__ y, int64_t length, int64_t chunk_length, int chunks,
                   bool by_packs) {
  __shared__ float scratch[kWarp];
  const int64_t from = blockIdx.x % chunks * chunk_length;
  const T* mine = x + blockIdx.x / chunks * length + from;
  const int64_t here = length - from < chunk_length ? length - from : chunk_length;
  const float part = by_packs ? sum_by_packs(mine, here) : sum_by_elements(mine, here);
  const float sum = block_sum(part, scratch);
  if (threadIdx.x == 0) y[blockIdx.x] = from_float<Out>(sum);
}

// Threads for a chunk: whole warps, kSumVectors vectors each while that is no more than kMostSumThreads.
template <typename T>
unsigned int sum_threads(int64_t chunk_length) {
  const int64_t warps = ceil_div(chunk_length, kSumVectors * kWarp * FloatPack<T>::kLanes);
  return static_cast<unsigned int>(std::clamp<int64_t>(warps * kWarp, kWarp, kMostSumThreads));
}

// Sums `chunks` chunks of each row: y has rows · chunks elements. chunk_length · chunks must cover a row, and no chunk
// may be empty unless the row is.
template <typename T, typename Out>
void launch_row_sum(const T* x, Out* y, int64_t rows, int64_t length, int64_t chunk_length, int chunks,
                    cudaStream_t stream) {
  constexpr int kLanes = FloatPack<T>::kLanes;
  const bool by_packs = is_aligned16(x) && length % kLanes == 0 && (chunks == 1 || chunk_length % kLanes == 0);
  row_sum_chunks<<<covering_grid(rows * chunks, 1), sum_threads<T>(chunk_length), 0, stream>>>(
      x, y, length, chunk_length, chunks, by_packs);
  check_launch("row_sum");
}

// The host side: calls body(x, y, rows, length, stream) with typed pointers; returns y [M].
template <typename Body>
Tensor row_sums(const Tensor& input, const char* kernel, Body&& body) {
  STD_TORCH_CHECK(input.dim() == 2, kernel, ": expected [M, N], got ", input.dim(), " dimensions");
  const Tensor x = torch::stable::contiguous(input);
  const int64_t rows = x.size(0);
  Tensor y = torch::stable::new_empty(x, {&rows, 1});
  if (rows == 0) return y;
  dispatch_float(x, kernel, [&](auto tag) {
    using T = decltype(tag);
    body(input_pointer<T>(x), output_pointer<T>(y), rows, x.size(1), current_stream(x));
  });
  return y;
}

}  // namespace groundspeed
