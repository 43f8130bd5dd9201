// The chunks of flash-decoding on the CUDA cores, in float32: lanes share out the elements of a head, any size up to
// kSize.
//
// A warp takes four positions at a time: loads of whole rows, a sum over the warp for each position and query. Four
// queries that share a head of the caches are a block's; further ones read the positions again, from L2.
#pragma once

#include "decode_parts.cuh"

namespace groundspeed {

constexpr int kPlainWarps = 4;
constexpr int kPlainQueries = 4;
constexpr int kPlainKeys = 4;

template <int kSize>
__global__ void __launch_bounds__(kPlainWarps * 32)
    decode_fma_kernel(const float* __restrict__ q, Heads<float> k, Heads<float> v, const int* __restrict__ lengths,
                      Parts parts, int kv_heads, int group, int chunk, int size, float scale) {
  __shared__ BlockParts<kPlainWarps, kPlainQueries, kSize> block;
  constexpr int kEach = kSize / 32;
  const int length = lengths[blockIdx.x / kv_heads];
  const int first = blockIdx.y * chunk;
  if (first >= length) return;
  const int last = min(first + chunk, length);
  const int first_query = blockIdx.z * kPlainQueries;
  const int queries = min(group - first_query, kPlainQueries);
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * group + first_query;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const float* k_start = k.start(blockIdx.x, kv_heads);
  const float* v_start = v.start(blockIdx.x, kv_heads);

  float query[kPlainQueries][kEach], sums[kPlainQueries][kEach] = {};
  float maximum[kPlainQueries], total[kPlainQueries] = {};
#pragma unroll
  for (int c = 0; c < kPlainQueries; ++c) {
    maximum[c] = -CUDART_INF_F;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int d = lane + i * 32;
      query[c][i] = c < queries && d < size ? q[(first_row + c) * size + d] * scale : 0.0f;
    }
  }
  for (int start = first + warp * kPlainKeys; start < last; start += kPlainWarps * kPlainKeys) {
    float keys[kPlainKeys][kEach], values[kPlainKeys][kEach];
#pragma unroll
    for (int j = 0; j < kPlainKeys; ++j) {
      const int64_t row = min(start + j, last - 1);
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const int d = lane + i * 32;
        keys[j][i] = d < size ? k_start[row * k.row + d] : 0.0f;
        values[j][i] = d < size ? v_start[row * v.row + d] : 0.0f;
      }
    }
#pragma unroll
    for (int c = 0; c < kPlainQueries; ++c) {
      float scores[kPlainKeys];
      float top = maximum[c];
#pragma unroll
      for (int j = 0; j < kPlainKeys; ++j) {
        float score = 0.0f;
#pragma unroll
        for (int i = 0; i < kEach; ++i) score += query[c][i] * keys[j][i];
#pragma unroll
        for (int offset = 16; offset > 0; offset /= 2) score += __shfl_xor_sync(0xffffffffu, score, offset);
        scores[j] = start + j < last ? score : -CUDART_INF_F;
        top = fmaxf(top, scores[j]);
      }
      const float shrink = power_of_two(maximum[c] - top);
      maximum[c] = top;
      total[c] *= shrink;
#pragma unroll
      for (int i = 0; i < kEach; ++i) sums[c][i] *= shrink;
#pragma unroll
      for (int j = 0; j < kPlainKeys; ++j) {
        const float weight = power_of_two(scores[j] - top);
        total[c] += weight;
#pragma unroll
        for (int i = 0; i < kEach; ++i) sums[c][i] += weight * values[j][i];
      }
    }
  }
#pragma unroll
  for (int c = 0; c < kPlainQueries; ++c) {
    if (lane == 0) block.stats[warp][c] = make_float2(maximum[c], total[c]);
#pragma unroll
    for (int i = 0; i < kEach; ++i) block.sums[warp][c][lane + i * 32] = sums[c][i];
  }
  __syncthreads();
  store_parts(block, parts, first_row, queries, blockIdx.y, size);
}

template <int kSize>
void launch_decode_fma(const DecodeOperands& operands, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned int>(operands.pairs), static_cast<unsigned int>(operands.splits),
                  static_cast<unsigned int>((operands.group + kPlainQueries - 1) / kPlainQueries));
  decode_fma_kernel<kSize><<<grid, kPlainWarps * 32, 0, stream>>>(
      input_pointer<float>(operands.q), heads_of<float>(operands.k), heads_of<float>(operands.v),
      input_pointer<int>(operands.lengths), parts_of(operands), operands.kv_heads, operands.group, operands.chunk,
      operands.size, attention_scale(operands.size));
}

}  // namespace groundspeed
