// FlashAttention-2 by mma.sync: 128 queries a block, 32 a warp, keys and values in tiles of 64 by cp.async.
//
// The output's accumulators stay in registers; a tile of scores never leaves them either: as accumulators of the first
// product they already lie where the second wants its left factor. While one tile of keys and values is multiplied the
// next is on its way: one barrier a tile. 16-byte chunks are swizzled (chunk ^ row mod 8), so neither copies nor
// ldmatrix meet in a bank. Dao, "FlashAttention-2" (2023).
#pragma once

#include "attention_operands.cuh"
#include "fragment_store.cuh"
#include "mma.cuh"
#include "online_softmax.cuh"

namespace groundspeed {

template <int kSize_>
struct FlashTile {
  static constexpr int kSize = kSize_;       // of a head
  static constexpr int kRows = 128;          // queries a block
  static constexpr int kWarpRows = 32;       // two mma tiles: a fragment of keys or values serves both
  static constexpr int kKeys = 64;           // a tile
  static constexpr int kThreads = kRows / kWarpRows * 32;
  static constexpr int kChunks = kSize / 8;  // of 16 bytes in a row
  static constexpr int kRowBytes = kSize * 2;
  static constexpr int kTileBytes = kKeys * kRowBytes;
  static constexpr int kStageBytes = 2 * kTileBytes;  // keys, then values
  static constexpr int kSharedBytes = kRows * kRowBytes + 2 * kStageBytes;
};

// Starts copying kRows rows into a swizzled tile; those from `left` on become zeros.
template <typename Tile, int kRows, typename T>
__device__ __forceinline__ void fetch_rows(uint32_t tile, const T* source, int64_t stride, int left) {
  constexpr int kApart = Tile::kThreads / Tile::kChunks;  // a multiple of 8, so the swizzle is the same in all rows
  static_assert(kApart % 8 == 0 && kRows % kApart == 0);
  const int chunk = threadIdx.x % Tile::kChunks;
  const int row = threadIdx.x / Tile::kChunks;
  const uint32_t place = tile + row * Tile::kRowBytes + (chunk ^ (row % 8)) * 16;
  const T* from = source + row * stride + chunk * 8;
#pragma unroll
  for (int i = 0; i < kRows / kApart; ++i) {
    copy_async16(place + i * kApart * Tile::kRowBytes, from + i * kApart * stride, row + i * kApart < left);
  }
}

// 8 × 16 fragments of queries, two tiles of 16 rows, for one step of 16 along the head.
template <typename Tile>
__device__ __forceinline__ void load_queries(uint32_t (&queries)[2][4], uint32_t lane_address, int step) {
#pragma unroll
  for (int i = 0; i < 2; ++i) load_matrices(queries[i], (lane_address ^ (step * 32)) + i * 16 * Tile::kRowBytes);
}

template <typename T>
__device__ __forceinline__ void multiply_pair(float* left, float* right, const uint32_t (&a)[4],
                                              const uint32_t (&b)[4]) {
  multiply_accumulate<T>(*reinterpret_cast<float(*)[4]>(left), a, b[0], b[1]);
  multiply_accumulate<T>(*reinterpret_cast<float(*)[4]>(right), a, b[2], b[3]);
}

template <typename T, typename Tile>
__global__ void __launch_bounds__(Tile::kThreads)
    flash_mma_kernel(Heads<T> q, Heads<T> k, Heads<T> v, HeadRows<T> out, int heads, int length, float scale,
                     bool causal) {
  extern __shared__ __align__(1024) unsigned char shared[];
  constexpr int kSteps = Tile::kSize / 16;   // of a product along the head
  constexpr bool kHeld = Tile::kSize <= 64;  // registers suffice for the queries' fragments
  const int first_row = query_block(causal) * Tile::kRows;
  const int keys = causal ? min(length, first_row + Tile::kRows) : length;
  const int tiles = (keys + Tile::kKeys - 1) / Tile::kKeys;
  const int whole = (causal ? first_row : length) / Tile::kKeys;  // tiles before this one hide nothing
  const T* k_source = k.start(blockIdx.x, heads);
  const T* v_source = v.start(blockIdx.x, heads);

  const uint32_t q_tile = shared_address(shared);
  const uint32_t stages = q_tile + Tile::kRows * Tile::kRowBytes;
  const auto fetch = [&](int tile) {
    const uint32_t stage = stages + tile % 2 * Tile::kStageBytes;
    const int64_t from = static_cast<int64_t>(tile) * Tile::kKeys;
    const int left = length - tile * Tile::kKeys;
    fetch_rows<Tile, Tile::kKeys>(stage, k_source + from * k.row, k.row, left);
    fetch_rows<Tile, Tile::kKeys>(stage + Tile::kTileBytes, v_source + from * v.row, v.row, left);
  };

  const int lane = threadIdx.x % 32;
  const int warp_row = threadIdx.x / 32 * Tile::kWarpRows;
  // Which row and which chunk of the first fragment each lane names to ldmatrix; a step of 16 along the head flips bits
  // of the chunk, which the swizzle leaves alone.
  const uint32_t q_lane = q_tile + (warp_row + lane % 16) * Tile::kRowBytes + ((lane / 16) ^ (lane % 8)) * 16;
  const uint32_t k_lane = stages + (lane % 8 + lane / 16 * 8) * Tile::kRowBytes + ((lane / 8 % 2) ^ (lane % 8)) * 16;
  const uint32_t v_lane = stages + Tile::kTileBytes + lane % 16 * Tile::kRowBytes + ((lane / 16) ^ (lane % 8)) * 16;

  float sums[2][Tile::kSize / 2] = {};
  OnlineRows rows[2] = {no_keys_yet(), no_keys_yet()};
  uint32_t held[kHeld ? kSteps : 1][2][4];

  fetch_rows<Tile, Tile::kRows>(q_tile, q.start(blockIdx.x, heads) + static_cast<int64_t>(first_row) * q.row, q.row,
                                length - first_row);
  fetch(0);
  commit_copies();
  for (int tile = 0; tile < tiles; ++tile) {
    wait_copies<0>();
    __syncthreads();  // this tile is there for all, and all have left the stage that the next one goes to
    if (tile + 1 < tiles) fetch(tile + 1);
    commit_copies();
    if constexpr (kHeld) {
      if (tile == 0) {
#pragma unroll
        for (int step = 0; step < kSteps; ++step) load_queries<Tile>(held[step], q_lane, step);
      }
    }
    const int first_key = tile * Tile::kKeys;
    if (causal && first_key >= first_row + warp_row + Tile::kWarpRows) continue;  // nothing of it is seen
    const uint32_t stage = tile % 2 * Tile::kStageBytes;

    float scores[2][Tile::kKeys / 2] = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      uint32_t loaded[2][4];
      if constexpr (!kHeld) load_queries<Tile>(loaded, q_lane, step);
      const uint32_t(&queries)[2][4] = kHeld ? held[kHeld ? step : 0] : loaded;
#pragma unroll
      for (int j = 0; j < Tile::kKeys / 16; ++j) {
        uint32_t b[4];
        load_matrices(b, ((k_lane + stage) ^ (step * 32)) + j * 16 * Tile::kRowBytes);
#pragma unroll
        for (int i = 0; i < 2; ++i) multiply_pair<T>(&scores[i][j * 8], &scores[i][j * 8 + 4], queries[i], b);
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (tile >= whole) {
        hide(scores[i], first_row + warp_row + i * 16 + lane / 4, first_key + lane % 4 * 2, length, causal);
      }
      float shrink[2];
      take_in(rows[i], scores[i], scale, shrink);
      multiply_rows(sums[i], shrink);
    }
#pragma unroll
    for (int step = 0; step < Tile::kKeys / 16; ++step) {
      uint32_t weights[2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i) as_factor<T>(weights[i], scores[i], step);
#pragma unroll
      for (int j = 0; j < kSteps; ++j) {
        uint32_t b[4];
        load_matrices_transposed(b, ((v_lane + stage) ^ (j * 32)) + step * 16 * Tile::kRowBytes);
#pragma unroll
        for (int i = 0; i < 2; ++i) multiply_pair<T>(&sums[i][j * 8], &sums[i][j * 8 + 4], weights[i], b);
      }
    }
  }

#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float inverse[2] = {1.0f / quad_sum(rows[i].sum[0]), 1.0f / quad_sum(rows[i].sum[1])};
    multiply_rows(sums[i], inverse);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + warp_row + i * 16 + half * 8 + lane / 4;
      T* place = out.start(blockIdx.x, heads) + row * out.row;
#pragma unroll
      for (int j = 0; j < kSteps; ++j) {
        const float* pair = &sums[i][j * 8 + half * 2];
        store_two_tiles(place + j * 16, row < length ? 16 : 0, pair[0], pair[1], pair[4], pair[5]);
      }
    }
  }
}

template <typename T, int kSize>
void launch_flash_mma(const AttentionOperands& operands, bool causal, cudaStream_t stream, const char* name) {
  using Tile = FlashTile<kSize>;
  const auto kernel = flash_mma_kernel<T, Tile>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::kSharedBytes);
  STD_TORCH_CHECK(error == cudaSuccess, name, ": ", cudaGetErrorString(error));
  kernel<<<attention_grid(operands, Tile::kRows), Tile::kThreads, Tile::kSharedBytes, stream>>>(
      heads_of<T>(operands.q), heads_of<T>(operands.k), heads_of<T>(operands.v),
      output_rows<T>(operands.out), operands.heads, operands.length, attention_scale(operands.size), causal);
}

}  // namespace groundspeed
