// Products on Hopper: one thread fetches, two warpgroups multiply, three warps finish the tile before.
//
// matmul/cuda_wgmma holds the tensor cores up at the end of every tile, for as long as its sums take to the output.
// Here the multiplying warpgroups only round their sums to 16 bits and lay them into shared memory; three warps take
// them from there into registers, apply the epilogue and store whole rows, while the next tile is multiplied. The
// second multiplying warpgroup starts two slices behind the first, so that they are not both at the end of a tile at
// a time.
//
// A tile is 128 rows × kWidth columns of sums; with two sides its left half belongs to one right factor and its right
// half to the other; a finishing thread takes both sums of an element. Rows of A, B and C are multiples of 16 bytes.
#pragma once

#include <algorithm>

#include "../matmul/tile_order.cuh"
#include "fragment_store.cuh"
#include "hopper_copy.cuh"
#include "product_operands.cuh"
#include "wgmma_128.cuh"

namespace groundspeed {

namespace hopper {

constexpr int kWarpgroup = 128;
constexpr int kMultipliers = 2;  // warpgroups; then a warp that fetches and three that finish
constexpr int kFinishers = 3;
constexpr int kThreads = (kMultipliers + 1) * kWarpgroup;
constexpr int kRowsEach = 64;
constexpr int kRows = kMultipliers * kRowsEach;
constexpr int kDepth = 64;  // of a slice along K: 128 bytes
constexpr int kStep = 16;   // of one product along K
constexpr int kBlock = 64;  // columns of B in 128 bytes
constexpr int kRowBytes = 128;
constexpr int kGroupBytes = 8 * kRowBytes;
constexpr int kBytesA = kRows * kRowBytes;
constexpr int kBlockBytesB = kDepth * kRowBytes;
constexpr int kHeadStart = 2;  // slices

// How shared memory is shared out for tiles of kWidth columns.
template <int kWidth>
struct Plan {
  static constexpr int kStages = kWidth == 256 ? 4 : 6;
  static constexpr int kBytesB = kWidth / kBlock * kBlockBytesB;
  static constexpr int kPitch = kWidth * 2 + 16;  // bytes of a staged row: eight rows lie in different banks
  static constexpr int kStaged = kStages * (kBytesA + kBytesB);  // where the staged sums of one warpgroup start
  static constexpr int kBarriers = kStaged + kRowsEach * kPitch;
  static constexpr int kBarrierCount = 2 * kStages + 2 * kMultipliers;
  static constexpr int kSharedBytes = kBarriers + kBarrierCount * static_cast<int>(sizeof(CopyBarrier));
};

template <int kProblems, int kSides>
struct Maps {
  CUtensorMap a[kProblems];
  CUtensorMap b[kProblems * kSides];
};

template <typename T, int kProblems>
struct Results {
  T* c[kProblems];
};

// The place of slice number `count` in the ring, and the parity of the phase in which it is filled.
template <int kStages>
struct RingPlace {
  int stage;
  uint32_t parity;
  __device__ __forceinline__ explicit RingPlace(int count)
      : stage(count % kStages), parity(static_cast<uint32_t>(count / kStages) & 1) {}
};

// Which tile of which product block `blockIdx.x` takes in its turn.
struct Tiling {
  int tiles_m;
  int tiles_n;
  int tiles;  // of all products
  __device__ __forceinline__ int problem(int tile) const { return tile / (tiles_m * tiles_n); }
  __device__ __forceinline__ TilePlace place(int tile) const {
    return tile_place(tile % (tiles_m * tiles_n), tiles_m, tiles_n);
  }
};

// The ring: filled[i] flips when stage i holds a slice, emptied[i] when both multiplying warpgroups are done with it.
// staged[w] flips when warpgroup w has laid a tile's sums down, drained[w] when they have been taken.
template <int kStages>
struct Barriers {
  CopyBarrier* filled;
  CopyBarrier* emptied;
  CopyBarrier* staged;
  CopyBarrier* drained;
  __device__ __forceinline__ explicit Barriers(unsigned char* place)
      : filled(reinterpret_cast<CopyBarrier*>(place)),
        emptied(filled + kStages),
        staged(emptied + kStages),
        drained(staged + kMultipliers) {}
  __device__ __forceinline__ void init() const {
    constexpr int kWarps = kWarpgroup / 32;
    for (int stage = 0; stage < kStages; ++stage) {
      barrier_init(&filled[stage], 1);
      barrier_init(&emptied[stage], kMultipliers * kWarps);
    }
    for (int warpgroup = 0; warpgroup < kMultipliers; ++warpgroup) {
      barrier_init(&staged[warpgroup], kWarps);
      barrier_init(&drained[warpgroup], kFinishers);
    }
    barrier_init_fence();
  }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// One warpgroup tells the other to start, by the hardware's barrier 1.
__device__ __forceinline__ void give_start() {
  asm volatile("bar.arrive 1, %0;" ::"n"(kMultipliers * kWarpgroup) : "memory");
}
__device__ __forceinline__ void await_start() {
  asm volatile("bar.sync 1, %0;" ::"n"(kMultipliers * kWarpgroup) : "memory");
}

// Four 8 × 8 matrices of 16-bit elements from fragments to rows in shared memory, one row named by each lane (PTX ISA,
// "stmatrix"): the counterpart of ldmatrix in mma.cuh.
__device__ __forceinline__ void store_matrices(uint32_t row_address, uint32_t m0, uint32_t m1, uint32_t m2,
                                               uint32_t m3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row_address), "r"(m0), "r"(m1),
               "r"(m2), "r"(m3)
               : "memory");
}

// The one fetching thread: all slices of all of this block's tiles, in order.
template <int kWidth, int kProblems, int kSides>
__device__ __forceinline__ void fetch_tiles(const Maps<kProblems, kSides>& maps, const Tiling& tiling, int depth,
                                            unsigned char* slices, const Barriers<Plan<kWidth>::kStages>& barriers) {
  using P = Plan<kWidth>;
  constexpr int kSpan = kWidth / kSides;
  int count = 0;
  for (int tile = blockIdx.x; tile < tiling.tiles; tile += gridDim.x) {
    const int problem = tiling.problem(tile);
    const TilePlace place = tiling.place(tile);
    for (int slice = 0; slice < depth; ++slice, ++count) {
      const RingPlace<P::kStages> ring(count);
      CopyBarrier* filled = &barriers.filled[ring.stage];
      barrier_wait(&barriers.emptied[ring.stage], ring.parity ^ 1);
      barrier_arrive_expecting(filled, kBytesA + P::kBytesB);
      copy_box(slices + ring.stage * kBytesA, &maps.a[problem], slice * kDepth, place.row * kRows, filled);
      unsigned char* b_stage = slices + P::kStages * kBytesA + ring.stage * P::kBytesB;
#pragma unroll
      for (int block = 0; block < kWidth / kBlock; ++block) {
        const int side = block / (kSpan / kBlock);
        const int column = place.column * kSpan + block % (kSpan / kBlock) * kBlock;
        copy_box(b_stage + block * kBlockBytesB, &maps.b[problem * kSides + side], column, slice * kDepth, filled);
      }
    }
  }
}

// Rounds a warp's 16 × kWidth sums and lays them into the rows that start at `staged`.
template <typename T, int kWidth>
__device__ __forceinline__ void stage_sums(const float (&sums)[kWidth / 2], uint32_t staged) {
  const int lane = threadIdx.x % 32;
  // Of the four matrices that a store takes, the lower eight rows are the last two, the right columns the odd ones.
  const int row = lane % 8 + lane / 16 * 8;
  const uint32_t address = staged + row * Plan<kWidth>::kPitch + lane / 8 % 2 * 16;
#pragma unroll
  for (int j = 0; j < kWidth / 8; j += 2) {
    const float* left = sums + j * 4;
    const float* right = left + 4;
    store_matrices(address + j * 16, pack_pair<T>(left[0], left[1]), pack_pair<T>(right[0], right[1]),
                   pack_pair<T>(left[2], left[3]), pack_pair<T>(right[2], right[3]));
  }
}

// A multiplying warpgroup: 64 rows of all of this block's tiles.
template <typename T, int kWidth>
__device__ __forceinline__ void multiply_tiles(const Tiling& tiling, int depth, const unsigned char* slices,
                                               const Barriers<Plan<kWidth>::kStages>& barriers) {
  using P = Plan<kWidth>;
  const int warpgroup = threadIdx.x / kWarpgroup;
  const int warp = threadIdx.x % kWarpgroup / 32;
  const int lane = threadIdx.x % 32;
  const uint32_t base = shared_address(slices);
  const uint64_t a_first = shared_matrix(base + warpgroup * kRowsEach * kRowBytes, 0, kGroupBytes);
  const uint64_t b_first = shared_matrix(base + P::kStages * kBytesA, kBlockBytesB, kGroupBytes);
  const uint32_t staged = base + P::kStaged + warp * 16 * P::kPitch;
  const int head_start = depth > kHeadStart ? kHeadStart : depth - 1;
  if (warpgroup == 1) await_start();

  float sums[kWidth / 2] = {};
  int count = 0;          // slices since the start, over all tiles, as the fetching thread counts them
  uint32_t parity = 0;    // of this block's tiles
  for (int tile = blockIdx.x; tile < tiling.tiles; tile += gridDim.x, parity ^= 1) {
    for (int slice = 0; slice < depth; ++slice, ++count) {
      const RingPlace<P::kStages> ring(count);
      const uint64_t a_slice = advanced(a_first, ring.stage * kBytesA);
      const uint64_t b_slice = advanced(b_first, ring.stage * P::kBytesB);
      barrier_wait(&barriers.filled[ring.stage], ring.parity);
      warpgroup_fence();
#pragma unroll
      for (int step = 0; step < kDepth / kStep; ++step) {
        warpgroup_multiply<T, kWidth>(sums, advanced(a_slice, step * kStep * 2),
                                      advanced(b_slice, step * kStep * kRowBytes), slice > 0 || step > 0);
      }
      warpgroup_commit();
      // The products of this slice go on while those of the one before are known to be done with their stage.
      warpgroup_wait<1>();
      if (slice > 0 && lane == 0) barrier_arrive(&barriers.emptied[RingPlace<P::kStages>(count - 1).stage]);
      if (warpgroup == 0 && count == head_start) give_start();
    }
    warpgroup_wait<0>();
    settle_accumulators(sums);
    if (lane == 0) barrier_arrive(&barriers.emptied[RingPlace<P::kStages>(count - 1).stage]);

    // The warpgroups stage in turn, 0 before 1: what the other one staged last must have been taken.
    barrier_wait(&barriers.drained[1 - warpgroup], warpgroup == 0 ? parity ^ 1 : parity);
    stage_sums<T, kWidth>(sums, staged);
    __syncwarp();
    if (lane == 0) barrier_arrive(&barriers.staged[warpgroup]);
  }
}

template <typename T, int kSides, typename Epilogue, typename Columns>
__device__ __forceinline__ void finish_pack(const Epilogue& epilogue, const Columns& columns, int problem, int row,
                                            int column, const FloatPack<T>& first, const FloatPack<T>& second, T* out) {
  constexpr int kLanes = FloatPack<T>::kLanes;
  float values[kLanes];
#pragma unroll
  for (int i = 0; i < kLanes; ++i) values[i] = to_float(first.lanes[i]);
  if constexpr (kSides == 1) {
    epilogue.template apply<true>(columns, problem, row, column, values);
  } else {
    float others[kLanes];
#pragma unroll
    for (int i = 0; i < kLanes; ++i) others[i] = to_float(second.lanes[i]);
    epilogue.template apply<true>(columns, problem, row, column, values, others);
  }
  FloatPack<T> pack;
#pragma unroll
  for (int i = 0; i < kLanes; ++i) pack.lanes[i] = from_float<T>(values[i]);
  store_pack(out, pack);
}

// Takes what the multiplying warpgroups staged, applies the epilogue and stores it: a warp's turn is as many whole
// rows as 32 packs make, and warp `finisher` takes every third turn.
template <typename T, int kWidth, int kProblems, int kSides, typename Epilogue>
__device__ __forceinline__ void finish_tiles(const Results<T, kProblems>& results, const Tiling& tiling, int m, int n,
                                             const Epilogue& epilogue, const unsigned char* slices,
                                             const Barriers<Plan<kWidth>::kStages>& barriers, int finisher) {
  using P = Plan<kWidth>;
  constexpr int kSpan = kWidth / kSides;
  constexpr int kLanes = FloatPack<T>::kLanes;
  constexpr int kPacksAcross = kSpan / kLanes;
  constexpr int kRowsAtOnce = 32 / kPacksAcross;
  constexpr int kTurns = kRowsEach / kRowsAtOnce;
  constexpr int kTogether = 4 / kSides;  // turns
  constexpr int kGroups = (kTurns + kFinishers * kTogether - 1) / (kFinishers * kTogether);
  constexpr int kOwn = kGroups * kTogether;
  const int lane = threadIdx.x % 32;
  const int own_row = finisher * kRowsAtOnce + lane / kPacksAcross;
  const int own_column = lane % kPacksAcross * kLanes;
  const unsigned char* staged = slices + P::kStaged + own_row * P::kPitch + own_column * 2;
  uint32_t parity = 0;
  for (int tile = blockIdx.x; tile < tiling.tiles; tile += gridDim.x, parity ^= 1) {
    const int problem = tiling.problem(tile);
    const TilePlace place = tiling.place(tile);
    const int column = place.column * kSpan + own_column;
    typename Epilogue::template Columns<kLanes> columns = {};
    if (column < n) columns = epilogue.template columns<true, kLanes>(problem, column, n);
#pragma unroll 1
    for (int warpgroup = 0; warpgroup < kMultipliers; ++warpgroup) {
      barrier_wait(&barriers.staged[warpgroup], parity);
      FloatPack<T> packs[kSides][kOwn];
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        if (i * kFinishers + finisher >= kTurns) break;
#pragma unroll
        for (int side = 0; side < kSides; ++side) {
          const unsigned char* pack = staged + i * kFinishers * kRowsAtOnce * P::kPitch + side * kSpan * 2;
          packs[side][i] = load_pack(reinterpret_cast<const T*>(pack));
        }
      }
      __syncwarp();
      if (lane == 0) barrier_arrive(&barriers.drained[warpgroup]);

      // A rolled loop over registers that move up: unrolled over all turns the code would not fit an instruction cache.
      int row = place.row * kRows + warpgroup * kRowsEach + own_row;
      T* out = results.c[problem] + static_cast<int64_t>(row) * n + column;
#pragma unroll 1
      for (int turn = finisher; turn < kTurns; turn += kFinishers * kTogether) {
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
          if (turn + i * kFinishers < kTurns && row < m && column < n) {
            finish_pack<T, kSides>(epilogue, columns, problem, row, column, packs[0][i], packs[kSides - 1][i], out);
          }
          row += kFinishers * kRowsAtOnce;
          out += static_cast<int64_t>(kFinishers * kRowsAtOnce) * n;
        }
#pragma unroll
        for (int side = 0; side < kSides; ++side) {
#pragma unroll
          for (int i = 0; i + kTogether < kOwn; ++i) packs[side][i] = packs[side][i + kTogether];
        }
      }
    }
  }
}

#endif

}  // namespace hopper

template <typename T, int kWidth, int kProblems, int kSides, typename Epilogue>
__global__ void __launch_bounds__(hopper::kThreads, 1)
    product_wgmma_kernel(const __grid_constant__ hopper::Maps<kProblems, kSides> maps,
                         const __grid_constant__ hopper::Results<T, kProblems> results,
                         const __grid_constant__ hopper::Tiling tiling, const __grid_constant__ Epilogue epilogue,
                         int m, int n, int k) {
  // Targets other than sm_90a get an empty kernel, and multiply() takes another one there.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using P = hopper::Plan<kWidth>;
  extern __shared__ __align__(1024) unsigned char slices[];
  const hopper::Barriers<P::kStages> barriers(slices + P::kBarriers);
  if (threadIdx.x == 0) barriers.init();
  __syncthreads();
  const int depth = (k + hopper::kDepth - 1) / hopper::kDepth;
  const int warpgroup = threadIdx.x / hopper::kWarpgroup;
  if (warpgroup < hopper::kMultipliers) {
    hopper::multiply_tiles<T, kWidth>(tiling, depth, slices, barriers);
    return;
  }
  const int finisher = static_cast<int>(threadIdx.x % hopper::kWarpgroup / 32) - 1;  // the first warp fetches
  if (finisher >= 0) {
    hopper::finish_tiles<T, kWidth, kProblems, kSides>(results, tiling, m, n, epilogue, slices, barriers, finisher);
  } else if (threadIdx.x % 32 == 0) {
    hopper::fetch_tiles<kWidth, kProblems, kSides>(maps, tiling, depth, slices, barriers);
  }
#endif
}

// Whether this GPU has wgmma.
inline bool is_hopper() {
  int device = 0;
  int major = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  STD_TORCH_CHECK(error == cudaSuccess, "cannot ask the GPU for its capability: ", cudaGetErrorString(error));
  return major == 9;
}

namespace hopper {

// Turns that the busiest block takes, times the price of a tile. A tile half as wide is priced at half and 15 % more:
// its products read 96 bytes of shared memory a cycle where wide ones read 80, and fetch 64 bytes from L2 where those
// fetch 48.
inline int64_t cost(int64_t tiles_m, int64_t n, int problems, int span, int price) {
  return tiles_of(tiles_m * tiles_of(n, span) * problems, multiprocessors()) * price;
}

template <typename T, int kWidth, int kProblems, int kSides, typename Epilogue>
void launch(const Operands<kProblems, kSides>& p, const Pointers<T, kProblems, kSides>& at, const Epilogue& epilogue,
            const char* name) {
  constexpr auto kType =
      std::is_same_v<T, __half> ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  Maps<kProblems, kSides> maps;
  Results<T, kProblems> results;
  for (int problem = 0; problem < kProblems; ++problem) {
    maps.a[problem] = describe_matrix(at.a[problem], kType, p.m, p.k, kRows);
    results.c[problem] = at.c[problem];
    for (int side = 0; side < kSides; ++side) {
      maps.b[problem * kSides + side] = describe_matrix(at.b[problem][side], kType, p.k, p.n, kDepth);
    }
  }
  const auto kernel = product_wgmma_kernel<T, kWidth, kProblems, kSides, Epilogue>;
  constexpr int kShared = Plan<kWidth>::kSharedBytes;
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  STD_TORCH_CHECK(error == cudaSuccess, name, ": ", cudaGetErrorString(error));
  const int64_t tiles_m = tiles_of(p.m, kRows);
  const int64_t tiles_n = tiles_of(p.n, kWidth / kSides);
  const int64_t tiles = tiles_m * tiles_n * kProblems;
  STD_TORCH_CHECK(tiles < (1ll << 31), name, ": too many tiles for one launch");
  const Tiling tiling = {static_cast<int>(tiles_m), static_cast<int>(tiles_n), static_cast<int>(tiles)};
  const int blocks = static_cast<int>(std::min<int64_t>(tiles, multiprocessors()));
  kernel<<<blocks, kThreads, kShared, current_stream(p.a[0])>>>(maps, results, tiling, epilogue,
                                                                static_cast<int>(p.m), static_cast<int>(p.n),
                                                                static_cast<int>(p.k));
}

}  // namespace hopper

// Wants rows_aligned<16>, K > 0, something to write and is_hopper().
template <typename T, int kProblems, int kSides, typename Epilogue>
void multiply_wgmma(const Operands<kProblems, kSides>& p, const Pointers<T, kProblems, kSides>& at,
                    const Epilogue& epilogue, const char* name) {
  const int64_t tiles_m = tiles_of(p.m, hopper::kRows);
  const int64_t wide = hopper::cost(tiles_m, p.n, kProblems, 256 / kSides, 256);
  const int64_t narrow = hopper::cost(tiles_m, p.n, kProblems, 128 / kSides, 147);
  wide <= narrow ? hopper::launch<T, 256>(p, at, epilogue, name) : hopper::launch<T, 128>(p, at, epilogue, name);
}

}  // namespace groundspeed
