// Flash-decoding's bookkeeping: what a chunk of positions leaves behind, and the kernel that merges the chunks.
//
// A part is, for one query and one chunk, the sum of 2^(score - maximum)·value over the chunk's positions, that maximum
// and the sum of the weights; scores are in units of a power of two. Parts merge as in softmax_math.cuh.
#pragma once

#include "attention_operands.cuh"
#include "elementwise.cuh"
#include "online_softmax.cuh"

namespace groundspeed {

struct DecodeOperands {
  Tensor q;        // [B, H, D], contiguous
  Tensor k;        // [B, H/G, S, D], rows that vectors can read
  Tensor v;        // the same
  Tensor lengths;  // [B], int32, contiguous
  Tensor out;      // [B, H, D], uninitialised
  Tensor sums;     // [B·H, splits, D], float32: of parts
  Tensor stats;    // [B·H, splits, 2], float32: maximum and sum of weights
  int64_t pairs;   // of a sequence and a head of the caches
  int kv_heads;
  int group;  // G
  int size;   // D
  int chunk;  // positions
  int splits;
};

// Positions a chunk, from the capacity of the caches: lengths are on the device. At least 256, and some 4096 chunks in
// all, so that those of long sequences balance after those of short ones have ended.
inline int64_t decode_chunk(int64_t pairs, int64_t capacity) {
  int64_t chunk = 256;
  while (chunk * 4096 < pairs * capacity) chunk *= 2;
  return chunk;
}

inline DecodeOperands decode_operands(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& lengths,
                                      const char* name) {
  STD_TORCH_CHECK(q.dim() == 3 && k.dim() == 4 && v.dim() == 4 && lengths.dim() == 1, name,
                  ": expected q [B, H, D], caches [B, H/G, S, D] and lengths [B]");
  for (int64_t d = 0; d < 4; ++d) STD_TORCH_CHECK(k.size(d) == v.size(d), name, ": k and v must have one shape");
  const int64_t batches = q.size(0), heads = q.size(1), size = q.size(2), kv_heads = k.size(1), capacity = k.size(2);
  STD_TORCH_CHECK(k.size(0) == batches && k.size(3) == size && kv_heads > 0 && heads % kv_heads == 0 &&
                      lengths.size(0) == batches && lengths.scalar_type() == ScalarType::Int,
                  name, ": q, the caches and int32 lengths do not fit together");
  STD_TORCH_CHECK(q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type(), name,
                  ": q, k and v must have one dtype");
  const int64_t itemsize = q.scalar_type() == ScalarType::Float ? 4 : 2;
  const int64_t pairs = batches * kv_heads, chunk = decode_chunk(pairs, capacity), splits = ceil_div(capacity, chunk);
  STD_TORCH_CHECK(pairs < (1ll << 31) && capacity < (1ll << 30) && splits < 65536, name, ": the caches are too large");
  return {torch::stable::contiguous(q),
          with_dense_rows(k, itemsize),
          with_dense_rows(v, itemsize),
          torch::stable::contiguous(lengths),
          torch::stable::new_empty(q, {batches, heads, size}),
          torch::stable::new_empty(q, {batches * heads, splits, size}, ScalarType::Float),
          torch::stable::new_empty(q, {batches * heads, splits, 2}, ScalarType::Float),
          pairs,
          static_cast<int>(kv_heads),
          static_cast<int>(heads / kv_heads),
          static_cast<int>(size),
          static_cast<int>(chunk),
          static_cast<int>(splits)};
}

// Where parts go: row is a sequence and a query head.
struct Parts {
  float* sums;
  float2* stats;
  int splits;
};

inline Parts parts_of(const DecodeOperands& operands) {
  return {static_cast<float*>(operands.sums.mutable_data_ptr()),
          static_cast<float2*>(operands.stats.mutable_data_ptr()), operands.splits};
}

// One part a warp and query, merged over the warps of a block. Padded so that quads of lanes meet in few banks.
template <int kWarps, int kQueries, int kSize>
struct BlockParts {
  float sums[kWarps][kQueries][kSize + 4];
  float2 stats[kWarps][kQueries];
};

// Merges what the warps have left in shared memory (a barrier before is the caller's) into the parts of `split`, for
// `queries` rows from first_row on.
template <int kWarps, int kQueries, int kSize>
__device__ __forceinline__ void store_parts(const BlockParts<kWarps, kQueries, kSize>& block, const Parts& parts,
                                            int64_t first_row, int queries, int split, int size) {
  for (int i = threadIdx.x; i < kQueries * kSize; i += kWarps * 32) {
    const int query = i / kSize, d = i % kSize;
    if (query >= queries || d >= size) continue;
    float maximum = -CUDART_INF_F;
    for (int warp = 0; warp < kWarps; ++warp) maximum = fmaxf(maximum, block.stats[warp][query].x);
    float sum = 0.0f, total = 0.0f;
    for (int warp = 0; warp < kWarps; ++warp) {
      const float2 stats = block.stats[warp][query];
      const float factor = power_of_two(stats.x - maximum);
      sum += block.sums[warp][query][d] * factor;
      total += stats.y * factor;
    }
    const int64_t part = (first_row + query) * parts.splits + split;
    parts.sums[part * size + d] = sum;
    if (d == 0) parts.stats[part] = make_float2(maximum, total);
  }
}

constexpr int kMergeWarps = 8;
constexpr int kFewChunks = 8;    // a warp is through with them before a block has met at its barriers
constexpr int kMostChunks = 32;  // as many as a warp has lanes to hold their statistics
constexpr unsigned int kManyRows = 1024;  // from here on a warp each fills the GPU

// A warp a row of up to kMostChunks: lanes hold the chunks' statistics, then the elements of the head, kSize at most. Nothing
// crosses warps, and no barrier keeps one row waiting for another.
template <typename T, int kSize>
__global__ void __launch_bounds__(kMergeWarps * 32)
    decode_merge_few(Parts parts, const int* __restrict__ lengths, T* __restrict__ out, int64_t rows, int heads,
                     int chunk, int size) {
  constexpr int kEach = kSize / 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kMergeWarps + threadIdx.x / 32;
  if (row >= rows) return;
  const int count = (lengths[row / heads] + chunk - 1) / chunk;
  const int lane = threadIdx.x % 32;
  const float2 mine = lane < count ? parts.stats[row * parts.splits + lane] : make_float2(-CUDART_INF_F, 0.0f);
  float maximum = mine.x;
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, offset));
  }
  const float factor = lane < count ? power_of_two(mine.x - maximum) : 0.0f;
  float total = mine.y * factor;
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) total += __shfl_xor_sync(0xffffffffu, total, offset);

  float sums[kEach] = {};
  const float* source = parts.sums + row * parts.splits * size;
#pragma unroll 4
  for (int split = 0; split < count; ++split, source += size) {
    const float weight = __shfl_sync(0xffffffffu, factor, split);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (lane + i * 32 < size) sums[i] = fmaf(source[lane + i * 32], weight, sums[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (lane + i * 32 < size) out[row * size + lane + i * 32] = from_float<T>(sums[i] / total);
  }
}

// A block a row: warps take chunks in turn, lanes the elements of the head, kSize at most.
template <typename T, int kSize>
__global__ void __launch_bounds__(kMergeWarps * 32)
    decode_merge_kernel(Parts parts, const int* __restrict__ lengths, T* __restrict__ out, int heads, int chunk,
                        int size) {
  __shared__ float maxima[kMergeWarps];
  __shared__ float totals[kMergeWarps];
  __shared__ float sums[kMergeWarps][kSize];
  constexpr int kEach = kSize / 32;
  const int64_t row = blockIdx.x;
  const int count = (lengths[row / heads] + chunk - 1) / chunk;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const float2* stats = parts.stats + row * parts.splits;
  float maximum = -CUDART_INF_F;
  for (int split = threadIdx.x; split < count; split += kMergeWarps * 32) maximum = fmaxf(maximum, stats[split].x);
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, offset));
  }
  if (lane == 0) maxima[warp] = maximum;
  __syncthreads();
  for (int other = 0; other < kMergeWarps; ++other) maximum = fmaxf(maximum, maxima[other]);

  float mine[kEach] = {};
  float total = 0.0f;
#pragma unroll 4
  for (int split = warp; split < count; split += kMergeWarps) {
    const float2 part = stats[split];
    const float factor = power_of_two(part.x - maximum);
    total += part.y * factor;
    const float* source = parts.sums + (row * parts.splits + split) * size;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (lane + i * 32 < size) mine[i] += source[lane + i * 32] * factor;
    }
  }
  if (lane == 0) totals[warp] = total;
#pragma unroll
  for (int i = 0; i < kEach; ++i) sums[warp][lane + i * 32] = mine[i];
  __syncthreads();
  for (int d = threadIdx.x; d < size; d += kMergeWarps * 32) {
    float sum = 0.0f, weights = 0.0f;
    for (int other = 0; other < kMergeWarps; ++other) {
      sum += sums[other][d];
      weights += totals[other];
    }
    out[row * size + d] = from_float<T>(sum / weights);
  }
}

template <typename T, int kSize>
void launch_decode_merge(const DecodeOperands& operands, cudaStream_t stream) {
  const unsigned int rows = static_cast<unsigned int>(operands.pairs * operands.group);
  const int most = rows < kManyRows ? kFewChunks : kMostChunks;
  if (operands.splits <= most) {
    decode_merge_few<T, kSize><<<ceil_div(rows, kMergeWarps), kMergeWarps * 32, 0, stream>>>(
        parts_of(operands), input_pointer<int>(operands.lengths), output_pointer<T>(operands.out), rows,
        operands.kv_heads * operands.group, operands.chunk, operands.size);
    return;
  }
  decode_merge_kernel<T, kSize><<<rows, kMergeWarps * 32, 0, stream>>>(
      parts_of(operands), input_pointer<int>(operands.lengths), output_pointer<T>(operands.out),
      operands.kv_heads * operands.group, operands.chunk, operands.size);
}

}  // namespace groundspeed
