// A row over a cluster of blocks: which columns are whose, and what the blocks tell each other.
//
// Blocks of a cluster run at the same time and may write into one another's shared memory (compute capability 9.0, PTX
// ISA 7.8: mapa, st.shared::cluster, barrier.cluster). A kernel calls cluster_arrive() first, so that every block is
// known to run, and cluster_wait() before it shares anything; after share() a block reads only its own memory, so it
// may end before the others do.
#pragma once

#include <algorithm>
#include <cstdint>

#include "elementwise.cuh"
#include "row_block.cuh"

namespace groundspeed {

constexpr int kClusterThreads = 256;
constexpr int kClusterElements = 32;   // of a row, in registers of a thread
constexpr int kMostClusterBlocks = 8;  // what every GPU with clusters grants
constexpr int kBlockColumns = kClusterThreads * kClusterElements;
constexpr int64_t kLongestClusterRow = static_cast<int64_t>(kMostClusterBlocks) * kBlockColumns;

// Blocks that share a multiprocessor: what keeps its loads going while one of them reduces or writes. Without packs an
// element needs an address and a bound of its own, and with them more registers.
template <bool kVector>
constexpr int kClusterResidents = kVector ? 4 : 1;

// Older targets compile and are never launched: `unsupported` leaves them out.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ __forceinline__ uint32_t cluster_blocks() {
  uint32_t blocks;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  return blocks;
}

__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }

__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// Gives every block two numbers of each: parts[r] are those of block r. They must be the same in all threads of a block.
__device__ __forceinline__ void share(float first, float second, float2 (&parts)[kMostClusterBlocks]) {
  if (threadIdx.x < cluster_blocks()) {
    const uint32_t here = static_cast<uint32_t>(__cvta_generic_to_shared(&parts[cluster_rank()]));
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(threadIdx.x));
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(there), "f"(first), "f"(second) : "memory");
  }
  cluster_arrive();
  cluster_wait();
}

#else

__device__ __forceinline__ uint32_t cluster_rank() { __trap(); }
__device__ __forceinline__ uint32_t cluster_blocks() { __trap(); }
__device__ __forceinline__ void cluster_arrive() { __trap(); }
__device__ __forceinline__ void cluster_wait() { __trap(); }
__device__ __forceinline__ void share(float, float, float2 (&)[kMostClusterBlocks]) { __trap(); }

#endif

// The columns of a row that a block holds.
struct ClusterSlice {
  int64_t row;     // which one
  int64_t from;    // the first column
  int64_t length;  // of the whole row
  int columns;     // of each block but the last

  __device__ ClusterSlice(int64_t length, int columns)
      : row(blockIdx.x / cluster_blocks()),
        from(static_cast<int64_t>(cluster_rank()) * columns),
        length(length),
        columns(columns) {}

  __device__ int of_block(int rank) const {
    const int64_t left = length - static_cast<int64_t>(rank) * columns;
    return static_cast<int>(left < columns ? left : columns);
  }
  __device__ int own() const { return of_block(cluster_rank()); }
};

// Launches kernel(arguments..., columns of a block) with a cluster for each of `rows` rows: as few blocks as hold one,
// a power of two.
template <typename... Parameters, typename... Arguments>
void launch_clusters(void (*kernel)(Parameters...), int64_t rows, int64_t length, cudaStream_t stream,
                     Arguments... arguments) {
  constexpr int64_t kWidestPack = 8;  // so that every block's columns begin at 16 bytes where the row does
  int64_t blocks = 1;
  while (blocks * kBlockColumns < length) blocks *= 2;
  const int columns = static_cast<int>(ceil_div(ceil_div(length, blocks), kWidestPack) * kWidestPack);
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = static_cast<unsigned int>(blocks);
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(covering_grid(rows * blocks, 1));
  launch.blockDim = dim3(kClusterThreads);
  launch.stream = stream;
  launch.attrs = &cluster;
  launch.numAttrs = 1;
  const cudaError_t error = cudaLaunchKernelEx(&launch, kernel, arguments..., columns);
  STD_TORCH_CHECK(error == cudaSuccess, "launching clusters of ", blocks, " blocks: ", cudaGetErrorString(error));
}

}  // namespace groundspeed
