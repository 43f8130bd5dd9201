// FlashAttention's backward pass by mma.sync without atomic operations: one kernel for grad_k and grad_v, one for
// grad_q.
//
// A block has 64 or 128 rows that stay, keys in the first kernel and queries in the second, 16 or 32 a warp: with 32 a
// fragment of the other rows serves two products. The others pass by in tiles by cp.async, one on its way while one is
// multiplied, one barrier a tile. Scores are computed with the rows that
// stay as rows, so that P, its gradient and their product lie in accumulators where the next product wants its left
// factor: nothing but the operands is ever in shared memory. 16-byte chunks are swizzled as in flash_mma.cuh.
//
// What lies beyond a sequence is zero, and so are its lse and delta: the weights of a query beyond are 1 and multiply a
// gradient of 0. Dao, "FlashAttention-2" (2023), algorithm 2.
#pragma once

#include "attention_gradients.cuh"
#include "flash_mma.cuh"

namespace groundspeed {

// A warp has kParts times 16 rows, and kOther rows pass by at a time: as many as registers hold beside the sums.
template <int kSize_, int kParts_, int kOther_>
struct BackwardTile {
  static constexpr int kSize = kSize_;
  static constexpr int kParts = kParts_;
  static constexpr int kWarpRows = 16 * kParts;
  static constexpr int kThreads = 128;
  static constexpr int kOwn = kThreads / 32 * kWarpRows;
  static constexpr int kOther = kOther_;
  static constexpr int kChunks = kSize / 8;
  static constexpr int kRowBytes = kSize * 2;
  static constexpr int kOwnBytes = kOwn * kRowBytes;
  static constexpr int kTileBytes = kOther * kRowBytes;
  static constexpr int kSaved = 2 * kTileBytes;                          // lse, then delta, of a stage's rows
  static constexpr int kStageBytes = 2 * kTileBytes + 2 * kOther * 4;
  static constexpr int kSharedBytes = 2 * kOwnBytes + 2 * kStageBytes;
  static constexpr int kSteps = kSize / 16;    // of a product along the head
  static constexpr int kScores = kOther / 2;   // accumulators of 16 × kOther, a lane
  static constexpr int kSums = kSize / 2;      // of 16 × kSize
};

// Copies 4 bytes as copy_async16 does 16.
__device__ __forceinline__ void copy_async4(uint32_t destination, const void* source, bool inside) {
  const int bytes = inside ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(destination), "l"(source), "r"(bytes) : "memory");
}

// The addresses at which a lane names rows to ldmatrix, of the first fragment in a tile that starts at `tile`: as a
// left factor (16 rows from `row` on), as a right factor whose rows are the product's columns, and as one whose rows
// are added up. A step of 16 along the head flips bits of the chunk, which the swizzle leaves alone.
template <typename Tile>
struct LaneAddress {
  static __device__ __forceinline__ uint32_t left(uint32_t tile, int row, int lane) {
    return tile + (row + lane % 16) * Tile::kRowBytes + ((lane / 16) ^ (lane % 8)) * 16;
  }
  static __device__ __forceinline__ uint32_t columns(uint32_t tile, int lane) {
    return tile + (lane % 8 + lane / 16 * 8) * Tile::kRowBytes + ((lane / 8 % 2) ^ (lane % 8)) * 16;
  }
  static __device__ __forceinline__ uint32_t summed(uint32_t tile, int lane) { return left(tile, 0, lane); }
};

// scores = own rows · other rowsᵀ.
template <typename T, typename Tile>
__device__ __forceinline__ void multiply_rows_by_rows(float (&scores)[Tile::kParts][Tile::kScores], uint32_t own,
                                                      uint32_t other) {
#pragma unroll
  for (int i = 0; i < Tile::kParts; ++i) {
#pragma unroll
    for (int e = 0; e < Tile::kScores; ++e) scores[i][e] = 0.0f;
  }
#pragma unroll
  for (int step = 0; step < Tile::kSteps; ++step) {
    uint32_t a[Tile::kParts][4];
#pragma unroll
    for (int i = 0; i < Tile::kParts; ++i) load_matrices(a[i], (own ^ (step * 32)) + i * 16 * Tile::kRowBytes);
#pragma unroll
    for (int j = 0; j < Tile::kOther / 16; ++j) {
      uint32_t b[4];
      load_matrices(b, (other ^ (step * 32)) + j * 16 * Tile::kRowBytes);
#pragma unroll
      for (int i = 0; i < Tile::kParts; ++i) multiply_pair<T>(&scores[i][j * 8], &scores[i][j * 8 + 4], a[i], b);
    }
  }
}

// sums += weights · other rows.
template <typename T, typename Tile>
__device__ __forceinline__ void add_weighted_rows(float (&sums)[Tile::kParts][Tile::kSums],
                                                  const float (&weights)[Tile::kParts][Tile::kScores],
                                                  uint32_t other) {
#pragma unroll
  for (int step = 0; step < Tile::kOther / 16; ++step) {
    uint32_t a[Tile::kParts][4];
#pragma unroll
    for (int i = 0; i < Tile::kParts; ++i) as_factor<T>(a[i], weights[i], step);
#pragma unroll
    for (int j = 0; j < Tile::kSteps; ++j) {
      uint32_t b[4];
      load_matrices_transposed(b, (other ^ (j * 32)) + step * 16 * Tile::kRowBytes);
#pragma unroll
      for (int i = 0; i < Tile::kParts; ++i) multiply_pair<T>(&sums[i][j * 8], &sums[i][j * 8 + 4], a[i], b);
    }
  }
}

// Rounds a warp's sums times `factor` and stores those of rows before `length`.
template <typename T, typename Tile>
__device__ __forceinline__ void store_rows(const float (&sums)[Tile::kParts][Tile::kSums], float factor, T* start,
                                           int64_t stride, int first_row, int length) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int half = 0; half < 2 * Tile::kParts; ++half) {
    const int row = first_row + half * 8 + lane / 4;
    T* place = start + row * stride;
#pragma unroll
    for (int j = 0; j < Tile::kSteps; ++j) {
      const float* pair = &sums[half / 2][j * 8 + half % 2 * 2];
      store_two_tiles(place + j * 16, row < length ? 16 : 0, pair[0] * factor, pair[1] * factor, pair[4] * factor,
                      pair[5] * factor);
    }
  }
}

template <typename T, typename Tile>
__global__ void __launch_bounds__(Tile::kThreads)
    attention_backward_keys(BackwardHeads<T> p, HeadRows<T> grad_k, HeadRows<T> grad_v) {
  extern __shared__ __align__(1024) unsigned char shared[];
  using Lane = LaneAddress<Tile>;
  const int first_key = blockIdx.y * Tile::kOwn;
  const int tiles = (p.length + Tile::kOther - 1) / Tile::kOther;
  const int first_tile = p.causal ? first_key / Tile::kOther : 0;
  const T *q_source = p.q.start(blockIdx.x, p.heads), *grad_source = p.grad.start(blockIdx.x, p.heads);
  const float *levels = p.levels(blockIdx.x), *shifts = p.shifts(blockIdx.x);
  const uint32_t k_tile = shared_address(shared), v_tile = k_tile + Tile::kOwnBytes;
  const uint32_t stages = v_tile + Tile::kOwnBytes;
  const auto fetch = [&](int tile) {
    const uint32_t stage = stages + tile % 2 * Tile::kStageBytes;
    const int from = tile * Tile::kOther, left = p.length - from;
    fetch_rows<Tile, Tile::kOther>(stage, q_source + from * p.q.row, p.q.row, left);
    fetch_rows<Tile, Tile::kOther>(stage + Tile::kTileBytes, grad_source + from * p.grad.row, p.grad.row, left);
    if (threadIdx.x < 2 * Tile::kOther) {
      const int row = threadIdx.x % Tile::kOther;
      const float* saved = threadIdx.x < Tile::kOther ? levels : shifts;
      copy_async4(stage + Tile::kSaved + threadIdx.x * 4, saved + from + row, row < left);
    }
  };

  const int lane = threadIdx.x % 32, warp_row = threadIdx.x / 32 * Tile::kWarpRows;
  const uint32_t k_own = Lane::left(k_tile, warp_row, lane), v_own = Lane::left(v_tile, warp_row, lane);
  const int own_key = first_key + warp_row + lane / 4;  // and every eighth from there on

  float sums_k[Tile::kParts][Tile::kSums] = {}, sums_v[Tile::kParts][Tile::kSums] = {};
  fetch_rows<Tile, Tile::kOwn>(k_tile, p.k.start(blockIdx.x, p.heads) + first_key * p.k.row, p.k.row,
                               p.length - first_key);
  fetch_rows<Tile, Tile::kOwn>(v_tile, p.v.start(blockIdx.x, p.heads) + first_key * p.v.row, p.v.row,
                               p.length - first_key);
  fetch(first_tile);
  commit_copies();
  for (int tile = first_tile; tile < tiles; ++tile) {
    wait_copies<0>();
    __syncthreads();  // this tile is there for all, and all have left the stage that the next one goes to
    if (tile + 1 < tiles) fetch(tile + 1);
    commit_copies();
    const int first_row = tile * Tile::kOther;
    if (p.causal && first_row + Tile::kOther <= first_key + warp_row) continue;  // these queries see none of the keys
    const uint32_t q_stage = stages + tile % 2 * Tile::kStageBytes, grad_stage = q_stage + Tile::kTileBytes;
    const float* saved = reinterpret_cast<const float*>(shared + 2 * Tile::kOwnBytes + tile % 2 * Tile::kStageBytes +
                                                        Tile::kSaved) +
                         lane % 4 * 2;

    float weights[Tile::kParts][Tile::kScores], slopes[Tile::kParts][Tile::kScores];
    multiply_rows_by_rows<T, Tile>(weights, k_own, Lane::columns(q_stage, lane));
    multiply_rows_by_rows<T, Tile>(slopes, v_own, Lane::columns(grad_stage, lane));
    const bool diagonal = p.causal && first_row < first_key + warp_row + Tile::kWarpRows;
#pragma unroll
    for (int j = 0; j < Tile::kOther / 8; ++j) {
      const float2 level = *reinterpret_cast<const float2*>(saved + j * 8);
      const float2 shift = *reinterpret_cast<const float2*>(saved + Tile::kOther + j * 8);
#pragma unroll
      for (int i = 0; i < 4 * Tile::kParts; ++i) {
        float& weight = weights[i / 4][j * 4 + i % 4];
        float& slope = slopes[i / 4][j * 4 + i % 4];
        weight = power_of_two(fmaf(weight, p.scale, -kLog2OfE * (i % 2 == 0 ? level.x : level.y)));
        if (diagonal && own_key + i / 2 * 8 > first_row + j * 8 + lane % 4 * 2 + i % 2) weight = 0.0f;
        slope = weight * (slope - (i % 2 == 0 ? shift.x : shift.y));
      }
    }
    add_weighted_rows<T, Tile>(sums_v, weights, Lane::summed(grad_stage, lane));
    add_weighted_rows<T, Tile>(sums_k, slopes, Lane::summed(q_stage, lane));
  }
  const int first = first_key + warp_row;
  store_rows<T, Tile>(sums_k, p.scale * kLogOf2, grad_k.start(blockIdx.x, p.heads), grad_k.row, first, p.length);
  store_rows<T, Tile>(sums_v, 1.0f, grad_v.start(blockIdx.x, p.heads), grad_v.row, first, p.length);
}

template <typename T, typename Tile>
__global__ void __launch_bounds__(Tile::kThreads)
    attention_backward_queries(BackwardHeads<T> p, HeadRows<T> grad_q) {
  extern __shared__ __align__(1024) unsigned char shared[];
  using Lane = LaneAddress<Tile>;
  const int first_row = query_block(p.causal) * Tile::kOwn;
  const int keys = p.causal ? min(p.length, first_row + Tile::kOwn) : p.length;
  const int tiles = (keys + Tile::kOther - 1) / Tile::kOther;
  const T *k_source = p.k.start(blockIdx.x, p.heads), *v_source = p.v.start(blockIdx.x, p.heads);
  const uint32_t q_tile = shared_address(shared), grad_tile = q_tile + Tile::kOwnBytes;
  const uint32_t stages = grad_tile + Tile::kOwnBytes;
  const auto fetch = [&](int tile) {
    const uint32_t stage = stages + tile % 2 * Tile::kStageBytes;
    const int from = tile * Tile::kOther, left = p.length - from;
    fetch_rows<Tile, Tile::kOther>(stage, k_source + from * p.k.row, p.k.row, left);
    fetch_rows<Tile, Tile::kOther>(stage + Tile::kTileBytes, v_source + from * p.v.row, p.v.row, left);
  };

  const int lane = threadIdx.x % 32, warp_row = threadIdx.x / 32 * Tile::kWarpRows;
  const uint32_t q_own = Lane::left(q_tile, warp_row, lane), grad_own = Lane::left(grad_tile, warp_row, lane);
  const int own_row = first_row + warp_row + lane / 4;  // and every eighth from there on
  constexpr int kRowsEach = 2 * Tile::kParts;
  float level[kRowsEach] = {}, shift[kRowsEach] = {};
  int last[kRowsEach];  // the last key that a row sees
#pragma unroll
  for (int half = 0; half < kRowsEach; ++half) {
    const int row = own_row + half * 8;
    last[half] = p.causal ? min(row, p.length - 1) : p.length - 1;
    if (row < p.length) level[half] = kLog2OfE * p.levels(blockIdx.x)[row];
    if (row < p.length) shift[half] = p.shifts(blockIdx.x)[row];
  }

  float sums[Tile::kParts][Tile::kSums] = {};
  fetch_rows<Tile, Tile::kOwn>(q_tile, p.q.start(blockIdx.x, p.heads) + first_row * p.q.row, p.q.row,
                               p.length - first_row);
  fetch_rows<Tile, Tile::kOwn>(grad_tile, p.grad.start(blockIdx.x, p.heads) + first_row * p.grad.row, p.grad.row,
                               p.length - first_row);
  fetch(0);
  commit_copies();
  for (int tile = 0; tile < tiles; ++tile) {
    wait_copies<0>();
    __syncthreads();  // this tile is there for all, and all have left the stage that the next one goes to
    if (tile + 1 < tiles) fetch(tile + 1);
    commit_copies();
    const int first_key = tile * Tile::kOther;
    if (p.causal && first_key >= first_row + warp_row + Tile::kWarpRows) continue;  // nothing of it is seen
    const uint32_t k_stage = stages + tile % 2 * Tile::kStageBytes, v_stage = k_stage + Tile::kTileBytes;

    float weights[Tile::kParts][Tile::kScores], slopes[Tile::kParts][Tile::kScores];
    multiply_rows_by_rows<T, Tile>(weights, q_own, Lane::columns(k_stage, lane));
    multiply_rows_by_rows<T, Tile>(slopes, grad_own, Lane::columns(v_stage, lane));
    const bool masked = first_key + Tile::kOther > (p.causal ? min(first_row + warp_row, p.length) : p.length);
#pragma unroll
    for (int i = 0; i < Tile::kParts * Tile::kScores; ++i) {
      const int part = i / Tile::kScores, e = i % Tile::kScores, half = part * 2 + e / 2 % 2;
      float weight = power_of_two(fmaf(weights[part][e], p.scale, -level[half]));
      if (masked && first_key + e / 4 * 8 + lane % 4 * 2 + e % 2 > last[half]) weight = 0.0f;
      slopes[part][e] = weight * (slopes[part][e] - shift[half]);
    }
    add_weighted_rows<T, Tile>(sums, slopes, Lane::summed(k_stage, lane));
  }
  store_rows<T, Tile>(sums, p.scale * kLogOf2, grad_q.start(blockIdx.x, p.heads), grad_q.row, first_row + warp_row,
                      p.length);
}

template <typename T, int kSize>
void launch_flash_backward_mma(AttentionGradients& all, bool causal, cudaStream_t stream, const char* name) {
  using Keys = BackwardTile<kSize, kSize == 64 ? 2 : 1, 32>;
  using Queries = BackwardTile<kSize, 2, 32>;
  launch_attention_delta<T>(all, stream);
  const BackwardHeads<T> p = backward_heads<T>(all, causal);
  const auto keys = attention_backward_keys<T, Keys>;
  allow_shared_bytes(keys, Keys::kSharedBytes, name);
  keys<<<backward_grid(all, Keys::kOwn), Keys::kThreads, Keys::kSharedBytes, stream>>>(
      p, output_rows<T>(all.grads[1]), output_rows<T>(all.grads[2]));
  const auto queries = attention_backward_queries<T, Queries>;
  allow_shared_bytes(queries, Queries::kSharedBytes, name);
  queries<<<backward_grid(all, Queries::kOwn), Queries::kThreads, Queries::kSharedBytes, stream>>>(
      p, output_rows<T>(all.grads[0]));
}

}  // namespace groundspeed
