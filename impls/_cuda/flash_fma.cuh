// FlashAttention in float32 on the CUDA cores: 64 queries a block, keys and values in tiles of 64 through shared
// memory.
//
// 16 × 16 threads: a thread computes 4 × 4 scores of a tile, and of the output 4 rows of kSize / 16 elements, from
// 16-byte reads of shared memory; rows are padded by 16 bytes so that the eight threads of a phase meet in no bank.
// Keys and values take turns in one buffer. Any head dimension up to kSize: what is missing is zero.
#pragma once

#include "attention_operands.cuh"
#include "online_softmax.cuh"

namespace groundspeed {

template <int kSize_>
struct FlashPlain {
  static constexpr int kSize = kSize_;
  static constexpr int kRows = 64;
  static constexpr int kKeys = 64;
  static constexpr int kSide = 16;  // threads along each side of a tile
  static constexpr int kThreads = kSide * kSide;
  static constexpr int kEach = kRows / kSide;  // rows, and columns of scores, a thread
  static constexpr int kPitch = kSize + 4;
  static constexpr int kWeightPitch = kKeys + 4;
  static constexpr int kSharedBytes = ((kRows + kKeys) * kPitch + kRows * kWeightPitch) * 4;
};

template <typename Plain>
__device__ __forceinline__ void load_plain(float* tile, const float* source, int64_t stride, int size, int left) {
#pragma unroll 4
  for (int e = threadIdx.x; e < Plain::kRows * Plain::kSize; e += Plain::kThreads) {
    const int row = e / Plain::kSize, d = e % Plain::kSize;
    tile[row * Plain::kPitch + d] = row < left && d < size ? source[row * stride + d] : 0.0f;
  }
}

__device__ __forceinline__ float4 four(const float* address) { return *reinterpret_cast<const float4*>(address); }

__device__ __forceinline__ float side_max(float value) {
#pragma unroll
  for (int offset = 8; offset > 0; offset /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

__device__ __forceinline__ float side_sum(float value) {
#pragma unroll
  for (int offset = 8; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

template <typename Plain>
__global__ void __launch_bounds__(Plain::kThreads)
    flash_fma_kernel(Heads<float> q, Heads<float> k, Heads<float> v, HeadRows<float> out, int heads, int length,
                     int size, float scale, bool causal) {
  extern __shared__ __align__(16) float plain[];
  constexpr int kEach = Plain::kEach;
  constexpr int kParts = Plain::kSize / 64;  // of 4 columns, 64 apart, that a thread holds of the output
  float* q_tile = plain;
  float* kv_tile = q_tile + Plain::kRows * Plain::kPitch;
  float* weights = kv_tile + Plain::kKeys * Plain::kPitch;
  const int across = threadIdx.x % Plain::kSide;
  const int down = threadIdx.x / Plain::kSide * kEach;  // the first of this thread's rows
  const int first_row = query_block(causal) * Plain::kRows;
  const int keys = causal ? min(length, first_row + Plain::kRows) : length;
  const float* k_source = k.start(blockIdx.x, heads);
  const float* v_source = v.start(blockIdx.x, heads);

  float sums[kEach][kParts][4] = {};
  float maximum[kEach], total[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    maximum[i] = -CUDART_INF_F;
    total[i] = 0.0f;
  }
  load_plain<Plain>(q_tile, q.start(blockIdx.x, heads) + static_cast<int64_t>(first_row) * q.row, q.row, size,
                    length - first_row);
  for (int first_key = 0; first_key < keys; first_key += Plain::kKeys) {
    __syncthreads();  // all have read the values of the tile before
    load_plain<Plain>(kv_tile, k_source + static_cast<int64_t>(first_key) * k.row, k.row, size, length - first_key);
    __syncthreads();
    float scores[kEach][kEach] = {};
#pragma unroll 4
    for (int d = 0; d < Plain::kSize; d += 4) {
      float4 left[kEach], right[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        left[i] = four(q_tile + (down + i) * Plain::kPitch + d);
        right[i] = four(kv_tile + (across + i * Plain::kSide) * Plain::kPitch + d);
      }
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) {
          scores[i][j] += left[i].x * right[j].x + left[i].y * right[j].y + left[i].z * right[j].z +
                          left[i].w * right[j].w;
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int seen = causal ? min(length, first_row + down + i + 1) : length;
      float top = maximum[i];
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        if (first_key + across + j * Plain::kSide >= seen) scores[i][j] = -CUDART_INF_F;
        top = fmaxf(top, scores[i][j]);
      }
      top = side_max(top);
      const float shrink = power_of_two((maximum[i] - top) * scale);
      maximum[i] = top;
      total[i] *= shrink;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const float weight = power_of_two((scores[i][j] - top) * scale);
        total[i] += weight;
        weights[(down + i) * Plain::kWeightPitch + across + j * Plain::kSide] = weight;
      }
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
#pragma unroll
        for (int c = 0; c < 4; ++c) sums[i][part][c] *= shrink;
      }
    }
    __syncthreads();  // the weights are there, and all have read the keys
    load_plain<Plain>(kv_tile, v_source + static_cast<int64_t>(first_key) * v.row, v.row, size, length - first_key);
    __syncthreads();
#pragma unroll 2
    for (int key = 0; key < Plain::kKeys; key += 4) {
      float4 left[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) left[i] = four(weights + (down + i) * Plain::kWeightPitch + key);
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
#pragma unroll
        for (int s = 0; s < 4; ++s) {
          const float4 value = four(kv_tile + (key + s) * Plain::kPitch + part * 64 + across * 4);
#pragma unroll
          for (int i = 0; i < kEach; ++i) {
            const float weight = s == 0 ? left[i].x : s == 1 ? left[i].y : s == 2 ? left[i].z : left[i].w;
            sums[i][part][0] += weight * value.x;
            sums[i][part][1] += weight * value.y;
            sums[i][part][2] += weight * value.z;
            sums[i][part][3] += weight * value.w;
          }
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const float inverse = 1.0f / side_sum(total[i]);
    const int row = first_row + down + i;
    float* place = out.start(blockIdx.x, heads) + row * out.row;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int d = part * 64 + across * 4 + c;
        if (row < length && d < size) place[d] = sums[i][part][c] * inverse;
      }
    }
  }
}

template <int kSize>
void launch_flash_fma(const AttentionOperands& operands, bool causal, cudaStream_t stream, const char* name) {
  using Plain = FlashPlain<kSize>;
  const auto kernel = flash_fma_kernel<Plain>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Plain::kSharedBytes);
  STD_TORCH_CHECK(error == cudaSuccess, name, ": ", cudaGetErrorString(error));
  kernel<<<attention_grid(operands, Plain::kRows), Plain::kThreads, Plain::kSharedBytes, stream>>>(
      heads_of<float>(operands.q), heads_of<float>(operands.k), heads_of<float>(operands.v),
      output_rows<float>(operands.out), operands.heads, operands.length, operands.size,
      attention_scale(operands.size), causal);
}

}  // namespace groundspeed
