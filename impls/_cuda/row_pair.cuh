// Rows that a pair of blocks shares, half of the columns each: one block a multiprocessor, which stays for all rows.
//
// Half a row leaves room in shared memory, into which the rows to come are copied (cp.async) while one is reduced and
// written. The two blocks are a cluster and tell each other two numbers a row (PTX ISA 8.1: st.async; compute
// capability 9.0).
#pragma once

#include <algorithm>
#include <cstdint>

#include "elementwise.cuh"
#include "hopper_copy.cuh"
#include "mma.cuh"
#include "row_block.cuh"
#include "row_cluster.cuh"

namespace groundspeed {

constexpr int kPair = 2;
constexpr int kPairElements = kMostRowElements / kPair;        // of a row, a thread
constexpr int kPairColumns = kMostRowThreads * kPairElements;  // of a row, a block
constexpr int64_t kShortestPairRow = kPairColumns + 1;         // less fits into one block
constexpr int64_t kLongestPairRow = kPair * kPairColumns;

// The columns of a row that a block has. Both halves begin at a multiple of 16: at 16 bytes even in a mask of bytes.
struct PairHalf {
  int from;
  int columns;
  int others;  // columns of the other block

  __device__ PairHalf(int length, uint32_t rank) {
    const int first = (length + 2 * kPackBytes - 1) / (2 * kPackBytes) * kPackBytes;
    from = rank == 0 ? 0 : first;
    columns = rank == 0 ? first : length - first;
    others = length - columns;
  }
};

// Which 16-byte packs of the half are a thread's: kRun neighbouring threads share a stretch of columns, neighbouring
// packs first.
template <typename T, int kRun>
struct PairSlice {
  static constexpr int kLanes = FloatPack<T>::kLanes;
  static constexpr int kPacks = kPairElements / kLanes;
  static constexpr int kStep = kRun * kLanes;  // columns from one pack of a thread to its next

  int left;  // columns from this thread's first on

  __device__ explicit PairSlice(int columns) : left(columns - column(0)) {}
  __device__ static int column(int pack) {
    const int thread = static_cast<int>(threadIdx.x);
    return thread / kRun * (kRun * kPairElements) + thread % kRun * kLanes + pack * kStep;
  }
  __device__ bool has(int pack) const { return pack * kStep < left; }
};

// Begins to copy this thread's packs of a half into shared memory, where they lie in order of columns. The thread that
// copies is the one that reads, so wait_copies suffices, without a barrier.
template <typename T, typename Slice>
__device__ __forceinline__ void copy_slice(T* shared, const T* half, const Slice& slice) {
#pragma unroll
  for (int i = 0; i < Slice::kPacks; ++i) {
    if (slice.has(i)) copy_async16(shared_address(shared + Slice::column(i)), half + Slice::column(i), true);
  }
}

template <typename T>
__device__ __forceinline__ FloatPack<T> shared_pack(const T* address) {
  return *reinterpret_cast<const FloatPack<T>*>(address);
}

// Of two places and their barriers, which a row uses and which phase of the barrier is its own.
struct PairTurn {
  int place = 0;
  uint32_t parity = 0;

  __device__ void next() {
    parity ^= place;
    place ^= 1;
  }
};

// Where the other block's numbers come in, of one row and the next in turn, and barriers that say they have.
struct PairInbox {
  float2 numbers[2];
  CopyBarrier arrived[2];
};

// Readies the inbox and says that this block runs. To be followed by cluster_wait() before the first exchange.
__device__ __forceinline__ void open_inbox(PairInbox& inbox) {
  if (threadIdx.x == 0) {
    barrier_init(&inbox.arrived[0], 1);
    barrier_init(&inbox.arrived[1], 1);
    barrier_init_fence();
  }
  __syncwarp();
  cluster_arrive();
}

// Older targets compile and are never launched: `unsupported` leaves them out.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Puts two numbers into the other block's memory and counts them at its barrier. One thread.
__device__ __forceinline__ void send(float2 own, float2* numbers, CopyBarrier* barrier, uint32_t other) {
  uint32_t there, counted;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(numbers)), "r"(other));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(counted) : "r"(shared_address(barrier)), "r"(other));
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(there), "f"(own.x),
      "f"(own.y), "r"(counted)
      : "memory");
}

// barrier_wait for what another block of the cluster has stored.
__device__ __forceinline__ void await(CopyBarrier* barrier, uint32_t parity) {
  uint32_t done = 0;
  while (!done) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  }
}

#else

__device__ __forceinline__ void send(float2, float2*, CopyBarrier*, uint32_t) { __trap(); }
__device__ __forceinline__ void await(CopyBarrier*, uint32_t) { __trap(); }

#endif

// Gives the other block two numbers, the same in all threads, and returns its two. Once a row, with a barrier of the
// block between two calls: the other block sends into a place again only once it has what this one sends next, and that
// is sent when all threads here have read the place. Behind its last call a block may end: nothing more is sent to it.
__device__ __forceinline__ float2 exchange(float2 own, PairInbox& inbox, const PairTurn& turn, uint32_t rank) {
  if (threadIdx.x == 0) {
    barrier_arrive_expecting(&inbox.arrived[turn.place], sizeof(float2));
    send(own, &inbox.numbers[turn.place], &inbox.arrived[turn.place], rank ^ 1);
  }
  await(&inbox.arrived[turn.place], turn.parity);
  return inbox.numbers[turn.place];
}

inline void check_pair_row(int64_t length, const char* kernel) {
  STD_TORCH_CHECK(length >= kShortestPairRow && length <= kLongestPairRow, kernel, ": N must be ", kShortestPairRow,
                  " to ", kLongestPairRow);
}

// Launches kernel(arguments..., rows) with a pair for each two multiprocessors, no more than there are rows.
template <typename... Parameters, typename... Arguments>
void launch_pairs(void (*kernel)(Parameters...), const Tensor& x, int64_t rows, int shared_bytes, cudaStream_t stream,
                  Arguments... arguments) {
  const cudaError_t allowed = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  STD_TORCH_CHECK(allowed == cudaSuccess, shared_bytes, " bytes of shared memory: ", cudaGetErrorString(allowed));
  const int64_t places = std::max(1, device_attribute(x, cudaDevAttrMultiProcessorCount) / kPair);
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = kPair;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(static_cast<unsigned int>(kPair * std::min(rows, places)));
  launch.blockDim = dim3(kMostRowThreads);
  launch.dynamicSmemBytes = static_cast<size_t>(shared_bytes);
  launch.stream = stream;
  launch.attrs = &cluster;
  launch.numAttrs = 1;
  const cudaError_t error = cudaLaunchKernelEx(&launch, kernel, arguments..., static_cast<int>(rows));
  STD_TORCH_CHECK(error == cudaSuccess, "launching pairs of blocks: ", cudaGetErrorString(error));
}

}  // namespace groundspeed
