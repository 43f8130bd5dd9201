// FlashAttention's backward pass in float32 on the CUDA cores, without atomic operations: as flash_backward_mma.cuh, in
// tiles of 64 × 64 through shared memory.
//
// 16 × 16 threads as in flash_fma.cuh: a thread computes 4 × 4 elements of a tile of scores and of P's gradient, and of
// each sum 4 rows of kSize / 16 elements. The weights go through shared memory to be read as rows. Any head dimension
// up to kSize: what is missing is zero.
#pragma once

#include "attention_gradients.cuh"
#include "flash_fma.cuh"

namespace groundspeed {

template <int kSize_>
struct BackwardPlain : FlashPlain<kSize_> {
  using Base = FlashPlain<kSize_>;
  static constexpr int kTile = Base::kRows * Base::kPitch;  // floats
  static constexpr int kParts = kSize_ / 64;                // of 4 columns, 64 apart, that a thread holds of a sum
  static constexpr int kSharedBytes = (4 * kTile + Base::kRows * Base::kWeightPitch) * 4;
};

// Element (down + i, across + 16·j) of left · rightᵀ.
template <typename Plain>
__device__ __forceinline__ void plain_scores(float (&scores)[4][4], const float* left_tile, const float* right_tile,
                                             int down, int across) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) scores[i][j] = 0.0f;
  }
#pragma unroll 4
  for (int d = 0; d < Plain::kSize; d += 4) {
    float4 left[4], right[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      left[i] = four(left_tile + (down + i) * Plain::kPitch + d);
      right[i] = four(right_tile + (across + i * Plain::kSide) * Plain::kPitch + d);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        scores[i][j] += left[i].x * right[j].x + left[i].y * right[j].y + left[i].z * right[j].z +
                        left[i].w * right[j].w;
      }
    }
  }
}

// Lays a thread's 4 × 4 elements down, and adds weights · tile to its sums once all have. The weights are free again at
// the next barrier.
template <typename Plain>
__device__ __forceinline__ void add_plain(float (&sums)[4][Plain::kParts][4], const float (&own)[4][4], float* weights,
                                          const float* tile, int down, int across) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) weights[(down + i) * Plain::kWeightPitch + across + j * Plain::kSide] = own[i][j];
  }
  __syncthreads();
#pragma unroll 2
  for (int row = 0; row < Plain::kKeys; row += 4) {
    float4 left[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) left[i] = four(weights + (down + i) * Plain::kWeightPitch + row);
#pragma unroll
    for (int part = 0; part < Plain::kParts; ++part) {
#pragma unroll
      for (int s = 0; s < 4; ++s) {
        const float4 value = four(tile + (row + s) * Plain::kPitch + part * 64 + across * 4);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
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

template <typename Plain>
__device__ __forceinline__ void store_plain(const float (&sums)[4][Plain::kParts][4], float factor,
                                            const HeadRows<float>& rows, int heads, int first_row, int across,
                                            int length, int size) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = first_row + i;
    float* place = rows.start(blockIdx.x, heads) + row * rows.row;
#pragma unroll
    for (int part = 0; part < Plain::kParts; ++part) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int d = part * 64 + across * 4 + c;
        if (row < length && d < size) place[d] = sums[i][part][c] * factor;
      }
    }
  }
}

template <typename Plain>
__device__ __forceinline__ void load_head(float* tile, const Heads<float>& rows, const BackwardHeads<float>& p,
                                          int first_row) {
  const float* source = rows.start(blockIdx.x, p.heads) + first_row * rows.row;
  load_plain<Plain>(tile, source, rows.row, p.size, p.length - first_row);
}

template <typename Plain>
__global__ void __launch_bounds__(Plain::kThreads, 1)
    attention_backward_plain_keys(BackwardHeads<float> p, HeadRows<float> grad_k, HeadRows<float> grad_v) {
  extern __shared__ __align__(16) float plain[];
  float *k_tile = plain, *v_tile = k_tile + Plain::kTile, *q_tile = v_tile + Plain::kTile;
  float *grad_tile = q_tile + Plain::kTile, *weights = grad_tile + Plain::kTile;
  const int across = threadIdx.x % Plain::kSide, down = threadIdx.x / Plain::kSide * 4;
  const int first_key = blockIdx.y * Plain::kKeys;
  const float *levels = p.levels(blockIdx.x), *shifts = p.shifts(blockIdx.x);
  float sums_k[4][Plain::kParts][4] = {}, sums_v[4][Plain::kParts][4] = {};
  load_head<Plain>(k_tile, p.k, p, first_key);
  load_head<Plain>(v_tile, p.v, p, first_key);
  for (int first_row = p.causal ? first_key : 0; first_row < p.length; first_row += Plain::kRows) {
    __syncthreads();  // all have read the tiles before
    load_head<Plain>(q_tile, p.q, p, first_row);
    load_head<Plain>(grad_tile, p.grad, p, first_row);
    __syncthreads();
    float own[4][4], slopes[4][4];
    plain_scores<Plain>(own, k_tile, q_tile, down, across);
    plain_scores<Plain>(slopes, v_tile, grad_tile, down, across);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int row = first_row + across + j * Plain::kSide;
      const float level = row < p.length ? kLog2OfE * levels[row] : 0.0f, shift = row < p.length ? shifts[row] : 0.0f;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const bool hidden = row >= p.length || (p.causal && first_key + down + i > row);
        own[i][j] = hidden ? 0.0f : power_of_two(fmaf(own[i][j], p.scale, -level));
        slopes[i][j] = own[i][j] * (slopes[i][j] - shift);
      }
    }
    add_plain<Plain>(sums_v, own, weights, grad_tile, down, across);
    __syncthreads();  // all have read the weights
    add_plain<Plain>(sums_k, slopes, weights, q_tile, down, across);
  }
  store_plain<Plain>(sums_k, p.scale * kLogOf2, grad_k, p.heads, first_key + down, across, p.length, p.size);
  store_plain<Plain>(sums_v, 1.0f, grad_v, p.heads, first_key + down, across, p.length, p.size);
}

template <typename Plain>
__global__ void __launch_bounds__(Plain::kThreads, 1)
    attention_backward_plain_queries(BackwardHeads<float> p, HeadRows<float> grad_q) {
  extern __shared__ __align__(16) float plain[];
  float *q_tile = plain, *grad_tile = q_tile + Plain::kTile, *k_tile = grad_tile + Plain::kTile;
  float *v_tile = k_tile + Plain::kTile, *weights = v_tile + Plain::kTile;
  const int across = threadIdx.x % Plain::kSide, down = threadIdx.x / Plain::kSide * 4;
  const int first_row = query_block(p.causal) * Plain::kRows;
  const int keys = p.causal ? min(p.length, first_row + Plain::kRows) : p.length;
  float level[4], shift[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = first_row + down + i;
    level[i] = row < p.length ? kLog2OfE * p.levels(blockIdx.x)[row] : 0.0f;
    shift[i] = row < p.length ? p.shifts(blockIdx.x)[row] : 0.0f;
  }
  float sums[4][Plain::kParts][4] = {};
  load_head<Plain>(q_tile, p.q, p, first_row);
  load_head<Plain>(grad_tile, p.grad, p, first_row);
  for (int first_key = 0; first_key < keys; first_key += Plain::kKeys) {
    __syncthreads();  // all have read the tiles before
    load_head<Plain>(k_tile, p.k, p, first_key);
    load_head<Plain>(v_tile, p.v, p, first_key);
    __syncthreads();
    float own[4][4], slopes[4][4];
    plain_scores<Plain>(own, q_tile, k_tile, down, across);
    plain_scores<Plain>(slopes, grad_tile, v_tile, down, across);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int seen = (p.causal ? min(p.length, first_row + down + i + 1) : p.length) - first_key - across;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const bool hidden = j * Plain::kSide >= seen;
        own[i][j] = hidden ? 0.0f : power_of_two(fmaf(own[i][j], p.scale, -level[i]));
        slopes[i][j] = own[i][j] * (slopes[i][j] - shift[i]);
      }
    }
    add_plain<Plain>(sums, slopes, weights, k_tile, down, across);
  }
  store_plain<Plain>(sums, p.scale * kLogOf2, grad_q, p.heads, first_row + down, across, p.length, p.size);
}

template <int kSize>
void launch_flash_backward_fma(AttentionGradients& all, bool causal, cudaStream_t stream, const char* name) {
  using Plain = BackwardPlain<kSize>;
  launch_attention_delta<float>(all, stream);
  const BackwardHeads<float> p = backward_heads<float>(all, causal);
  const dim3 grid = backward_grid(all, Plain::kRows);
  const auto keys = attention_backward_plain_keys<Plain>;
  allow_shared_bytes(keys, Plain::kSharedBytes, name);
  keys<<<grid, Plain::kThreads, Plain::kSharedBytes, stream>>>(p, output_rows<float>(all.grads[1]),
                                                              output_rows<float>(all.grads[2]));
  const auto queries = attention_backward_plain_queries<Plain>;
  allow_shared_bytes(queries, Plain::kSharedBytes, name);
  queries<<<grid, Plain::kThreads, Plain::kSharedBytes, stream>>>(p, output_rows<float>(all.grads[0]));
}

}  // namespace groundspeed
