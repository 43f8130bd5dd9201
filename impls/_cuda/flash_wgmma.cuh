// FlashAttention on Hopper: one thread orders bulk copies, two warpgroups multiply, softmax under way beside products.
//
// A multiplying warpgroup holds 64 queries. It issues the scores of one tile of 128 keys and the values of the tile
// before together; the softmax of the new scores runs while the tensor cores are at the values, and what one warpgroup
// leaves idle the other uses. Tiles are walked from the last to the first: only the last hides anything, so the loop
// has no mask. Registers move from the fetching warpgroup to the multiplying ones. Shah et al., "FlashAttention-3"
// (2024), whose ping-pong barriers between warpgroups are left out.
#pragma once

#include "attention_operands.cuh"
#include "fragment_store.cuh"
#include "hopper_heads.cuh"
#include "online_softmax.cuh"
#include "wgmma_attention.cuh"

namespace groundspeed {

template <int kSize_>
struct FlashHopper {
  static constexpr int kSize = kSize_;  // of a head
  static constexpr int kWarpgroup = 128;
  static constexpr int kMultipliers = 2;  // warpgroups that multiply; one more fetches
  static constexpr int kThreads = (kMultipliers + 1) * kWarpgroup;
  static constexpr int kRowsEach = 64;
  static constexpr int kRows = kMultipliers * kRowsEach;  // queries a block
  static constexpr int kKeys = 128;                       // a tile
  static constexpr int kStages = 2;
  static constexpr int kRowBytes = 128;  // 64 elements of the head
  static constexpr int kBlocks = kSize / 64;
  static constexpr int kQueryBlockBytes = kRows * kRowBytes;
  static constexpr int kKeyBlockBytes = kKeys * kRowBytes;
  static constexpr int kQueryBytes = kBlocks * kQueryBlockBytes;
  static constexpr int kTileBytes = kBlocks * kKeyBlockBytes;
  static constexpr int kBarriers = 1 + 4 * kStages;
  static constexpr int kSharedBytes = kQueryBytes + 2 * kStages * kTileBytes + kBarriers * sizeof(CopyBarrier);
};

// What lies where in shared memory.
template <typename Plan>
struct FlashShared {
  unsigned char* queries;
  unsigned char* keys;    // kStages tiles
  unsigned char* values;  // kStages tiles
  CopyBarrier* queries_filled;
  CopyBarrier* keys_filled;  // one a stage, as of all below
  CopyBarrier* keys_read;
  CopyBarrier* values_filled;
  CopyBarrier* values_read;

  __device__ __forceinline__ explicit FlashShared(unsigned char* start)
      : queries(start),
        keys(queries + Plan::kQueryBytes),
        values(keys + Plan::kStages * Plan::kTileBytes),
        queries_filled(reinterpret_cast<CopyBarrier*>(values + Plan::kStages * Plan::kTileBytes)),
        keys_filled(queries_filled + 1),
        keys_read(keys_filled + Plan::kStages),
        values_filled(keys_read + Plan::kStages),
        values_read(values_filled + Plan::kStages) {}

  __device__ __forceinline__ void init_barriers() const {
    constexpr int kWarps = Plan::kMultipliers * Plan::kWarpgroup / 32;
    barrier_init(queries_filled, 1);
    for (int stage = 0; stage < Plan::kStages; ++stage) {
      barrier_init(&keys_filled[stage], 1);
      barrier_init(&values_filled[stage], 1);
      barrier_init(&keys_read[stage], kWarps);
      barrier_init(&values_read[stage], kWarps);
    }
    barrier_init_fence();
  }
};

// Fetches the rows from first_row on of a head, 64 columns a box, and has `filled` count their bytes.
template <int kBlocks, int kBlockBytes>
__device__ __forceinline__ void fetch_tile(unsigned char* tile, const CUtensorMap* map, int first_row, int head,
                                           int batch, CopyBarrier* filled) {
  barrier_arrive_expecting(filled, kBlocks * kBlockBytes);
#pragma unroll
  for (int block = 0; block < kBlocks; ++block) {
    copy_head_rows(tile + block * kBlockBytes, map, block * 64, first_row, head, batch, filled);
  }
}

template <typename T, typename Plan>
__global__ void __launch_bounds__(Plan::kThreads, 1)
    flash_wgmma_kernel(const __grid_constant__ CUtensorMap q_map, const __grid_constant__ CUtensorMap k_map,
                       const __grid_constant__ CUtensorMap v_map, HeadRows<T> out, int heads, int length,
                       float scale, bool causal) {
  // Targets other than sm_90a get an empty kernel, and the launch refuses such a GPU.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char start[];
  constexpr int kStages = Plan::kStages;
  const FlashShared<Plan> shared(start);
  if (threadIdx.x == 0) shared.init_barriers();
  __syncthreads();

  const int first_row = query_block(causal) * Plan::kRows;
  const int keys = causal ? min(length, first_row + Plan::kRows) : length;
  const int tiles = (keys + Plan::kKeys - 1) / Plan::kKeys;
  const int warpgroup = threadIdx.x / Plan::kWarpgroup;

  if (warpgroup == Plan::kMultipliers) {
    give_registers<24>();
    if (threadIdx.x % Plan::kWarpgroup != 0) return;
    const int batch = blockIdx.x / heads, head = blockIdx.x % heads;
    fetch_tile<Plan::kBlocks, Plan::kQueryBlockBytes>(shared.queries, &q_map, first_row, head, batch,
                                                      shared.queries_filled);
    for (int count = 0; count < tiles; ++count) {
      const int stage = count % kStages;
      const uint32_t parity = count / kStages & 1;
      const int first_key = (tiles - 1 - count) * Plan::kKeys;
      barrier_wait(&shared.keys_read[stage], parity ^ 1);
      fetch_tile<Plan::kBlocks, Plan::kKeyBlockBytes>(shared.keys + stage * Plan::kTileBytes, &k_map, first_key, head,
                                                      batch, &shared.keys_filled[stage]);
      barrier_wait(&shared.values_read[stage], parity ^ 1);
      fetch_tile<Plan::kBlocks, Plan::kKeyBlockBytes>(shared.values + stage * Plan::kTileBytes, &v_map, first_key, head,
                                                      batch, &shared.values_filled[stage]);
    }
    return;
  }

  take_registers<240>();
  const int thread = threadIdx.x % Plan::kWarpgroup;
  const int lane = thread % 32;
  const int row = first_row + warpgroup * Plan::kRowsEach + thread / 32 * 16 + lane / 4;
  constexpr int kGroupBytes = 8 * Plan::kRowBytes;
  const uint64_t q_matrix = shared_matrix(
      shared_address(shared.queries) + warpgroup * Plan::kRowsEach * Plan::kRowBytes, 0, kGroupBytes);
  const uint64_t k_matrix = shared_matrix(shared_address(shared.keys), 0, kGroupBytes);
  const uint64_t v_matrix = shared_matrix(shared_address(shared.values), Plan::kKeyBlockBytes, kGroupBytes);

  float scores[Plan::kKeys / 2];
  float sums[Plan::kSize / 2] = {};
  uint32_t weights[Plan::kKeys / 16][4];
  float shrink[2];
  OnlineRows rows = no_keys_yet();
  const auto issue_scores = [&](int stage) {
#pragma unroll
    for (int step = 0; step < Plan::kSize / 16; ++step) {
      const int block = step / 4, along = step % 4 * 32;
      multiply_scores<T>(scores, advanced(q_matrix, block * Plan::kQueryBlockBytes + along),
                         advanced(k_matrix, stage * Plan::kTileBytes + block * Plan::kKeyBlockBytes + along), step > 0);
    }
    warpgroup_commit();
  };
  const auto issue_values = [&](int stage) {
#pragma unroll
    for (int step = 0; step < Plan::kKeys / 16; ++step) {
      multiply_values<T, Plan::kSize>(sums, weights[step],
                                      advanced(v_matrix, stage * Plan::kTileBytes + step * 16 * Plan::kRowBytes));
    }
    warpgroup_commit();
  };
  const auto round_weights = [&] {
#pragma unroll
    for (int step = 0; step < Plan::kKeys / 16; ++step) as_factor<T>(weights[step], scores, step);
  };
  const auto release = [&](CopyBarrier* read) {
    if (lane == 0) barrier_arrive(read);
  };

  barrier_wait(shared.queries_filled, 0);
  barrier_wait(&shared.keys_filled[0], 0);
  warpgroup_fence();
  issue_scores(0);
  warpgroup_wait<0>();
  settle_accumulators(scores);
  release(&shared.keys_read[0]);
  hide(scores, row, (tiles - 1) * Plan::kKeys + lane % 4 * 2, length, causal);
  take_in(rows, scores, scale, shrink);
  round_weights();
  for (int count = 1; count < tiles; ++count) {
    const int stage = count % kStages, before = (count - 1) % kStages;
    barrier_wait(&shared.keys_filled[stage], count / kStages & 1);
    warpgroup_fence();
    issue_scores(stage);
    barrier_wait(&shared.values_filled[before], (count - 1) / kStages & 1);
    issue_values(before);
    warpgroup_wait<1>();
    settle_accumulators(scores);
    take_in(rows, scores, scale, shrink);
    // Sums are never negative: this ties the exponentials, which the assembler was seen to move behind the wait for the
    // values, to an instruction that stays in front of it.
    if (!(rows.sum[0] + rows.sum[1] < 0.0f)) release(&shared.keys_read[stage]);
    warpgroup_wait<0>();
    settle_accumulators(sums);
    release(&shared.values_read[before]);
    multiply_rows(sums, shrink);
    round_weights();
  }
  const int last = tiles - 1;
  barrier_wait(&shared.values_filled[last % kStages], last / kStages & 1);
  warpgroup_fence();
  issue_values(last % kStages);
  warpgroup_wait<0>();
  settle_accumulators(sums);

  const float inverse[2] = {1.0f / quad_sum(rows.sum[0]), 1.0f / quad_sum(rows.sum[1])};
  multiply_rows(sums, inverse);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    T* place = out.start(blockIdx.x, heads) + (row + half * 8) * out.row;
#pragma unroll
    for (int j = 0; j < Plan::kSize / 16; ++j) {
      const float* pair = &sums[j * 8 + half * 2];
      store_two_tiles(place + j * 16, row + half * 8 < length ? 16 : 0, pair[0], pair[1], pair[4], pair[5]);
    }
  }
#endif
}

template <typename T, int kSize>
void launch_flash_wgmma(const AttentionOperands& operands, bool causal, cudaStream_t stream, const char* name) {
  using Plan = FlashHopper<kSize>;
  const auto kernel = flash_wgmma_kernel<T, Plan>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Plan::kSharedBytes);
  STD_TORCH_CHECK(error == cudaSuccess, name, ": ", cudaGetErrorString(error));
  kernel<<<attention_grid(operands, Plan::kRows), Plan::kThreads, Plan::kSharedBytes, stream>>>(
      describe_heads(operands.q, Plan::kRows), describe_heads(operands.k, Plan::kKeys),
      describe_heads(operands.v, Plan::kKeys), output_rows<T>(operands.out), operands.heads, operands.length,
      attention_scale(operands.size), causal);
}

}  // namespace groundspeed
