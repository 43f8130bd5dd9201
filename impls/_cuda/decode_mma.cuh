// The chunks of flash-decoding on tensor cores: keys and values from global memory to fragments without shared memory.
//
// Products are taken transposed, keys × queries and values × weights, so that the 8 columns of mma.m16n8k16 are the
// queries that share a head of the caches. The order of elements within a product's depth is free as long as both
// factors agree, which lets a lane load 16 bytes of a key and have two steps' worth of its fragment. Of values a lane
// loads 16 bytes of four positions and pairs neighbouring positions by byte permutations; accumulators then hold
// elements 8g to 8g + 7 of a head in lane group g. A warp takes tiles of 16 positions by itself; while one is
// multiplied the next is on its way.
#pragma once

#include "decode_parts.cuh"
#include "mma.cuh"

namespace groundspeed {

constexpr int kDecodeWarps = 4;
constexpr int kDecodeQueries = 8;  // a block
constexpr int kDecodeKeys = 16;    // a tile

// Lane (g, t) of an 8 × 8 matrix of 16-bit elements holds (row g, columns 2t, 2t + 1); afterwards (column g, rows 2t,
// 2t + 1).
__device__ __forceinline__ uint32_t transposed_pair(uint32_t pair) {
  uint32_t result;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(pair));
  return result;
}

__device__ __forceinline__ uint32_t word(const uint4& pack, int i) {
  return i == 0 ? pack.x : i == 1 ? pack.y : i == 2 ? pack.z : pack.w;
}

// The maximum over the lanes that hold the same queries: t fixed, g from 0 to 7.
__device__ __forceinline__ float group_max(float value) {
#pragma unroll
  for (int offset = 4; offset < 32; offset *= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

__device__ __forceinline__ float group_sum(float value) {
#pragma unroll
  for (int offset = 4; offset < 32; offset *= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// Vectors kApart elements apart from row + first on.
template <int kCount, int kApart, typename T>
__device__ __forceinline__ void load_vectors(uint4 (&vectors)[kCount], const T* address) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) vectors[i] = *reinterpret_cast<const uint4*>(address + i * kApart);
}

template <typename T, int kSize>
__global__ void __launch_bounds__(kDecodeWarps * 32)
    decode_mma_kernel(const T* __restrict__ q, Heads<T> k, Heads<T> v, const int* __restrict__ lengths, Parts parts,
                      int kv_heads, int group, int chunk, float scale) {
  __shared__ BlockParts<kDecodeWarps, kDecodeQueries, kSize> block;
  constexpr int kKeyVectors = kSize / 32;    // of a lane in a row of keys
  constexpr int kValueVectors = kSize / 64;  // of a lane in a row of values
  const int length = lengths[blockIdx.x / kv_heads];
  const int first = blockIdx.y * chunk;
  if (first >= length) return;
  const int last = min(first + chunk, length);
  const int first_query = blockIdx.z * kDecodeQueries;
  const int queries = min(group - first_query, kDecodeQueries);
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * group + first_query;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int g = lane / 4, t = lane % 4;
  const T* k_start = k.start(blockIdx.x, kv_heads) + t * 8;
  const T* v_start = v.start(blockIdx.x, kv_heads) + g * 8;

  uint4 query[kKeyVectors] = {};  // row g: columns of the product beyond `queries` are zero and never stored
  if (g < queries) load_vectors<kKeyVectors, 32>(query, q + (first_row + g) * kSize + t * 8);

  // Rows beyond the chunk are its last row once more: they cost nothing new, and their weights are zero.
  uint4 keys[2][kKeyVectors], values[4][kValueVectors];
  const auto load_keys = [&](int start) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int64_t row = min(start + g + i * 8, last - 1);
      load_vectors<kKeyVectors, 32>(keys[i], k_start + row * k.row);
    }
  };
  const auto load_values = [&](int start) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t row = min(start + i / 2 * 8 + t * 2 + i % 2, last - 1);
      load_vectors<kValueVectors, 64>(values[i], v_start + row * v.row);
    }
  };

  constexpr int kStride = kDecodeWarps * kDecodeKeys;
  float sums[kSize / 16][4] = {};
  float maximum[2] = {-CUDART_INF_F, -CUDART_INF_F};  // of queries 2t and 2t + 1, in powers of two
  float total[2] = {};                                // of the weights in this lane's rows
  int start = first + warp * kDecodeKeys;
  if (start < last) {
    load_keys(start);
    load_values(start);
  }
  for (; start < last; start += kStride) {
    float scores[4] = {};
#pragma unroll
    for (int i = 0; i < kKeyVectors; ++i) {
      const uint32_t left[4] = {keys[0][i].x, keys[1][i].x, keys[0][i].y, keys[1][i].y};
      const uint32_t right[4] = {keys[0][i].z, keys[1][i].z, keys[0][i].w, keys[1][i].w};
      multiply_accumulate<T>(scores, left, query[i].x, query[i].y);
      multiply_accumulate<T>(scores, right, query[i].z, query[i].w);
    }
    const bool more = start + kStride < last;
    if (more) load_keys(start + kStride);
    float shrink[2];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      scores[c] = start + g < last ? scores[c] * scale : -CUDART_INF_F;
      scores[2 + c] = start + g + 8 < last ? scores[2 + c] * scale : -CUDART_INF_F;
      const float top = group_max(fmaxf(maximum[c], fmaxf(scores[c], scores[2 + c])));
      shrink[c] = power_of_two(maximum[c] - top);
      maximum[c] = top;
      scores[c] = power_of_two(scores[c] - top);
      scores[2 + c] = power_of_two(scores[2 + c] - top);
      total[c] = total[c] * shrink[c] + scores[c] + scores[2 + c];
    }
    const uint32_t low = transposed_pair(rounded_pair<T>(scores[0], scores[1]));
    const uint32_t high = transposed_pair(rounded_pair<T>(scores[2], scores[3]));
#pragma unroll
    for (int i = 0; i < kSize / 16; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[i][e] *= shrink[e % 2];
      const int vector = i / 4, w = i % 4;
      const uint32_t a = word(values[0][vector], w), b = word(values[1][vector], w);
      const uint32_t c = word(values[2][vector], w), d = word(values[3][vector], w);
      const uint32_t pairs[4] = {__byte_perm(a, b, 0x5410), __byte_perm(a, b, 0x7632), __byte_perm(c, d, 0x5410),
                                 __byte_perm(c, d, 0x7632)};
      multiply_accumulate<T>(sums[i], pairs, low, high);
    }
    if (more) load_values(start + kStride);
  }

#pragma unroll
  for (int c = 0; c < 2; ++c) {
    const float whole = group_sum(total[c]);
    if (g == 0) block.stats[warp][t * 2 + c] = make_float2(maximum[c], whole);
#pragma unroll
    for (int i = 0; i < kSize / 16; ++i) {
      float* place = &block.sums[warp][t * 2 + c][i / 4 * 64 + g * 8 + i % 4 * 2];
      *reinterpret_cast<float2*>(place) = make_float2(sums[i][c], sums[i][2 + c]);
    }
  }
  __syncthreads();
  store_parts(block, parts, first_row, queries, blockIdx.y, kSize);
}

template <typename T, int kSize>
void launch_decode_mma(const DecodeOperands& operands, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned int>(operands.pairs), static_cast<unsigned int>(operands.splits),
                  static_cast<unsigned int>((operands.group + kDecodeQueries - 1) / kDecodeQueries));
  decode_mma_kernel<T, kSize><<<grid, kDecodeWarps * 32, 0, stream>>>(
      input_pointer<T>(operands.q), heads_of<T>(operands.k), heads_of<T>(operands.v),
      input_pointer<int>(operands.lengths), parts_of(operands), operands.kv_heads, operands.group, operands.chunk,
      attention_scale(operands.size));
}

}  // namespace groundspeed
