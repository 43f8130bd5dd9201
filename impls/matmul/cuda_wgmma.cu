// Hopper's own path, one thread ordering bulk copies while two warpgroups multiply out of shared memory.
//
// Compute-bound: 2·M·N·K FLOPs. cuda_mma spends instructions and registers on addresses, ldmatrix and fragments; here
// the tensor memory accelerator fetches boxes of A and B, wgmma reads them where they lie, and operands never pass
// through registers. A block owns 128 × 256 elements of C (64 × 256 a warpgroup, 128 float32 registers a thread) and
// four slices of 64 along K, 192 KiB; blocks stay and take one tile after another, so the slices of the next tile
// arrive while this one is written. Small products use 128 × 64 tiles. The accelerator wants rows in multiples of 16
// bytes (cuda_wgmma.py says so). Predicted: about 85 % of cuBLAS at 4096³.
//
// Reached on nvidia-h200 at 968ac8c4: 1.43 ms for bfloat16 M=8192,N=8192,K=8192, 767 TFLOP/s, 98 % of the compute
// ceiling, 0.977 times as fast as torch_eager.
#include "../_cuda/float_pack.cuh"
#include "../_cuda/fragment_store.cuh"
#include "../_cuda/hopper_copy.cuh"
#include "../_cuda/wgmma.cuh"
#include "product.cuh"
#include "tile_order.cuh"

#include <algorithm>

namespace {

using namespace groundspeed;

constexpr int kWarpgroup = 128;
constexpr int kMultipliers = 2;                             // warpgroups that multiply; one more fetches
constexpr int kThreads = (kMultipliers + 1) * kWarpgroup;
constexpr int kRowsEach = 64;                               // of C, a multiplying warpgroup
constexpr int kRows = kMultipliers * kRowsEach;
constexpr int kDepth = 64;                                  // of a slice along K: 128 bytes
[[maybe_unused]] constexpr int kStep = 16;                  // of one product along K
constexpr int kBlock = 64;                                  // columns of B in 128 bytes
constexpr int kRowBytes = 128;
[[maybe_unused]] constexpr int kGroupBytes = 8 * kRowBytes;
constexpr int kStages = 4;
constexpr int kBytesA = kRows * kRowBytes;
constexpr int kBlockBytesB = kDepth * kRowBytes;

template <int kColumns>
constexpr int kBytesB = kColumns / kBlock * kBlockBytesB;

template <int kColumns>
constexpr int kSharedBytes =
    kStages * (kBytesA + kBytesB<kColumns> + 2 * static_cast<int>(sizeof(CopyBarrier)));

// The place of slice number `count` in the ring, and the parity of the phase in which it is filled.
struct RingPlace {
  int stage;
  uint32_t parity;
};

[[maybe_unused]] __device__ __forceinline__ RingPlace ring_place(int count) {
  return {count % kStages, static_cast<uint32_t>(count / kStages) & 1};
}

template <typename T, int kColumns>
__global__ void __launch_bounds__(kThreads, 1)
    matmul_wgmma_kernel(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                        T* __restrict__ c, int m, int n, int k, int tiles_m, int tiles_n) {
  // Targets other than sm_90a get an empty kernel, and `run` refuses such a GPU.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char slices[];
  unsigned char* a_slices = slices;
  unsigned char* b_slices = slices + kStages * kBytesA;
  CopyBarrier* filled = reinterpret_cast<CopyBarrier*>(b_slices + kStages * kBytesB<kColumns>);
  CopyBarrier* emptied = filled + kStages;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      barrier_init(&filled[stage], 1);
      barrier_init(&emptied[stage], kMultipliers * kWarpgroup / 32);
    }
    barrier_init_fence();
  }
  __syncthreads();

  const int tiles = tiles_m * tiles_n;
  const int depth = (k + kDepth - 1) / kDepth;
  const int warpgroup = threadIdx.x / kWarpgroup;
  int count = 0;  // slices since the start, over all tiles; the fetching and the multiplying threads count alike

  if (warpgroup == kMultipliers) {
    if (threadIdx.x % kWarpgroup != 0) return;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      const TilePlace place = tile_place(tile, tiles_m, tiles_n);
      for (int slice = 0; slice < depth; ++slice, ++count) {
        const RingPlace ring = ring_place(count);
        barrier_wait(&emptied[ring.stage], ring.parity ^ 1);
        barrier_arrive_expecting(&filled[ring.stage], kBytesA + kBytesB<kColumns>);
        copy_box(a_slices + ring.stage * kBytesA, &a_map, slice * kDepth, place.row * kRows, &filled[ring.stage]);
#pragma unroll
        for (int block = 0; block < kColumns / kBlock; ++block) {
          copy_box(b_slices + ring.stage * kBytesB<kColumns> + block * kBlockBytesB, &b_map,
                   place.column * kColumns + block * kBlock, slice * kDepth, &filled[ring.stage]);
        }
      }
    }
    return;
  }

  const int thread = threadIdx.x % kWarpgroup;
  const int lane = thread % 32;
  const uint64_t a_first = shared_matrix(shared_address(a_slices) + warpgroup * kRowsEach * kRowBytes, 0, kGroupBytes);
  const uint64_t b_first = shared_matrix(shared_address(b_slices), kBlockBytesB, kGroupBytes);
  float sums[kColumns / 2] = {};
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    for (int slice = 0; slice < depth; ++slice, ++count) {
      const RingPlace ring = ring_place(count);
      const uint64_t a_slice = advanced(a_first, ring.stage * kBytesA);
      const uint64_t b_slice = advanced(b_first, ring.stage * kBytesB<kColumns>);
      barrier_wait(&filled[ring.stage], ring.parity);
      warpgroup_fence();
#pragma unroll
      for (int step = 0; step < kDepth / kStep; ++step) {
        warpgroup_multiply<T, kColumns>(sums, advanced(a_slice, step * kStep * 2),
                                        advanced(b_slice, step * kStep * kRowBytes), slice > 0 || step > 0);
      }
      warpgroup_commit();
      // The products of this slice go on while those of the one before are known to be done with their stage.
      warpgroup_wait<1>();
      if (slice > 0 && lane == 0) barrier_arrive(&emptied[ring_place(count - 1).stage]);
    }
    warpgroup_wait<0>();
    settle_accumulators(sums);
    if (lane == 0) barrier_arrive(&emptied[ring_place(count - 1).stage]);

    const TilePlace place = tile_place(tile, tiles_m, tiles_n);
    const int first_column = place.column * kColumns;
    const int row = place.row * kRows + warpgroup * kRowsEach + thread / 32 * 16 + lane / 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int here = row + half * 8;
      T* start = c + static_cast<int64_t>(here) * n + first_column;
#pragma unroll
      for (int j = 0; j < kColumns / 8; j += 2) {
        const int left = here < m ? n - first_column - j * 8 : 0;
        const float* pair = sums + j * 4 + half * 2;
        store_two_tiles(start + j * 8, left, pair[0], pair[1], pair[4], pair[5]);
      }
    }
  }
#endif
}

void check(cudaError_t error) {
  STD_TORCH_CHECK(error == cudaSuccess, "matmul/cuda_wgmma: ", cudaGetErrorString(error));
}

void require_hopper() {
  int device = 0;
  int major = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  STD_TORCH_CHECK(major == 9, "matmul/cuda_wgmma: wgmma exists on compute capability 9.0 only, this GPU has ",
                  major, ".x");
}

int tiles(int64_t length, int tile) { return static_cast<int>((length + tile - 1) / tile); }

template <typename T, int kColumns>
void launch(const Product& p, CUtensorMapDataType type) {
  const CUtensorMap a_map = describe_matrix(p.a.data_ptr(), type, p.m, p.k, kRows);
  const CUtensorMap b_map = describe_matrix(p.b.data_ptr(), type, p.k, p.n, kDepth);
  const auto kernel = matmul_wgmma_kernel<T, kColumns>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes<kColumns>));
  const int tiles_m = tiles(p.m, kRows);
  const int tiles_n = tiles(p.n, kColumns);
  const int blocks = std::min(tiles_m * tiles_n, multiprocessors());
  kernel<<<blocks, kThreads, kSharedBytes<kColumns>, current_stream(p.a)>>>(
      a_map, b_map, static_cast<T*>(p.c.data_ptr()), static_cast<int>(p.m), static_cast<int>(p.n),
      static_cast<int>(p.k), tiles_m, tiles_n);
}

template <typename T>
void launch_for_shape(const Product& p, CUtensorMapDataType type) {
  // A large tile is worth a quarter of the multiprocessors left idle, not more.
  const bool large = tiles(p.m, kRows) * tiles(p.n, 256) * 4 >= multiprocessors() * 3;
  large ? launch<T, 256>(p, type) : launch<T, 64>(p, type);
}

Tensor run(Tensor left, Tensor right) {
  require_hopper();
  const Product p = product_of(left, right, "matmul/cuda_wgmma");
  if (p.c.numel() == 0) return p.c;
  STD_TORCH_CHECK(p.k > 0 && p.k % 8 == 0 && p.n % 8 == 0 && is_aligned16(p.a.data_ptr()) &&
                      is_aligned16(p.b.data_ptr()),
                  "matmul/cuda_wgmma: the tensor memory accelerator needs K and N in multiples of 8, K > 0, and operands "
                  "at multiples of 16 bytes");
  switch (p.a.scalar_type()) {
    case ScalarType::Half:
      launch_for_shape<__half>(p, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
      break;
    case ScalarType::BFloat16:
      launch_for_shape<__nv_bfloat16>(p, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
      break;
    default:
      STD_TORCH_CHECK(false, "matmul/cuda_wgmma: expected float16 or bfloat16");
  }
  check_launch("matmul/cuda_wgmma");
  return p.c;
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor a, Tensor b) -> Tensor", run)
