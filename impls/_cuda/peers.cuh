// Kernels of one rank that write to the others' mailboxes (_ranks/mailbox.py), and how they meet.
//
// Block b of a grid deals with the same elements on every rank, so it waits for block b of the others alone. A grid is
// small enough to be resident at once: a block that waits for one that has not begun would keep it from beginning.
// Elements are dealt in 16-byte packs whatever the alignment of x, which may differ from rank to rank.
#pragma once

#include <algorithm>

#include "elementwise.cuh"

namespace groundspeed {

// As in _ranks/mailbox.py.
constexpr int kMostBlocks = 256;
constexpr int kMostRanks = 16;
constexpr int64_t kFlagBytes = int64_t{kMostBlocks} * kMostRanks * 4;
constexpr int kPeerBlock = 512;   // two blocks fit a multiprocessor
constexpr int kRoundPacks = 16;   // of each thread: with 256 blocks 32 MiB a round, whose barrier costs microseconds
constexpr unsigned long long kPatienceNs = 60'000'000'000ull;  // then a rank is dead, and this one must not outlive it

struct Mailboxes {
  const int64_t* addresses;  // [world]
  int* calls;                // [kMostBlocks]
  int64_t slot;              // bytes from one rank's slot to the next in a half
  int rank;
  int world;
};

__device__ __forceinline__ char* mailbox(const Mailboxes& boxes, int rank) {
  return reinterpret_cast<char*>(boxes.addresses[rank]);
}

__device__ __forceinline__ int* flag(const Mailboxes& boxes, int owner, int sender) {
  return reinterpret_cast<int*>(mailbox(boxes, owner)) + blockIdx.x * kMostRanks + sender;
}

__device__ __forceinline__ unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

// Says that this block's stores so far are done, in every rank's mailbox. The release orders what the whole block
// stored before the barrier in front of it.
__device__ __forceinline__ void announce(const Mailboxes& boxes, int progress) {
  __syncthreads();
  if (threadIdx.x < boxes.world) {
    __threadfence_system();
    asm volatile("st.release.sys.global.s32 [%0], %1;" ::"l"(flag(boxes, threadIdx.x, boxes.rank)), "r"(progress)
                 : "memory");
  }
}

// Waits until every rank's block of this number has announced as much; one may be ahead, hence "less than".
__device__ __forceinline__ void await(const Mailboxes& boxes, int progress) {
  if (threadIdx.x < boxes.world) {
    const int* own = flag(boxes, boxes.rank, threadIdx.x);
    const unsigned long long begun = nanoseconds();
    int seen;
    do {
      asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(seen) : "l"(own) : "memory");
      if (seen < progress && nanoseconds() - begun > kPatienceNs) __trap();
    } while (seen < progress);
  }
  __syncthreads();
}

// `count` elements from `address`, zeros behind them.
template <typename T>
__device__ __forceinline__ FloatPack<T> load_some(const T* address, int64_t count, bool aligned) {
  constexpr int kLanes = FloatPack<T>::kLanes;
  if (aligned && count >= kLanes) return load_pack(address);
  FloatPack<T> pack = filled_pack<T>(0.0f);
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) {
    if (lane < count) pack.lanes[lane] = address[lane];
  }
  return pack;
}

template <typename T>
__device__ __forceinline__ void store_some(T* address, const FloatPack<T>& pack, int64_t count, bool aligned) {
  constexpr int kLanes = FloatPack<T>::kLanes;
  if (aligned && count >= kLanes) return store_pack(address, pack);
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) {
    if (lane < count) address[lane] = pack.lanes[lane];
  }
}

// A whole pack of a mailbox. Past the first-level cache: another GPU wrote it since this one last looked.
template <typename T>
__device__ __forceinline__ FloatPack<T> load_sent(const char* address) {
  FloatPack<T> pack;
  *reinterpret_cast<uint4*>(&pack) = __ldcg(reinterpret_cast<const uint4*>(address));
  return pack;
}

// Slots are padded to whole packs, so a mailbox is always read and written in whole ones.
__device__ __forceinline__ char* place_in(char* box, int64_t half, int64_t slot, int64_t pack) {
  return box + half + slot + pack * kPackBytes;
}

// y [size] = the sum over ranks of their x, each pushed into the others' mailboxes first. `stride` is the distance in
// elements between the pieces of x for different ranks: 0 where all get the same. A large x goes in rounds: while one is
// on its way, what came in the round before is summed.
template <typename T>
__global__ void __launch_bounds__(kPeerBlock) push_and_sum(
    const T* x, T* y, int64_t size, int64_t stride, Mailboxes boxes, bool aligned) {
  constexpr int kLanes = FloatPack<T>::kLanes;
  const int call = boxes.calls[blockIdx.x];
  const int64_t half = kFlagBytes + (call & 1) * boxes.world * boxes.slot;
  const int64_t packs = ceil_div(size, kLanes);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kPeerBlock + threadIdx.x;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kPeerBlock;
  const int rounds = static_cast<int>(ceil_div(packs, step * kRoundPacks));  // the same on every rank
  const int before = call * rounds;
  for (int round = 0; round <= rounds; ++round) {
    if (round < rounds) {
      const int64_t begin = round * step * kRoundPacks;
      const int64_t end = min(packs, begin + step * kRoundPacks);
      for (int64_t pack = begin + first; pack < end; pack += step) {
        for (int hop = 1; hop < boxes.world; ++hop) {
          const int peer = (boxes.rank + hop) % boxes.world;  // not all to one rank at a time
          const int64_t at = pack * kLanes;
          const FloatPack<T> values = load_some(x + peer * stride + at, size - at, aligned);
          store_pack(reinterpret_cast<T*>(place_in(mailbox(boxes, peer), half, boxes.rank * boxes.slot, pack)), values);
        }
      }
      announce(boxes, before + round + 1);
    }
    if (round == 0) continue;
    await(boxes, before + round);
    const int64_t begin = (round - 1) * step * kRoundPacks;
    const int64_t end = min(packs, begin + step * kRoundPacks);
    for (int64_t pack = begin + first; pack < end; pack += step) {
      const int64_t at = pack * kLanes;
      float total[kLanes] = {};
      for (int peer = 0; peer < boxes.world; ++peer) {  // in one order on every rank: all get the same bits
        const FloatPack<T> values =
            peer == boxes.rank
                ? load_some(x + peer * stride + at, size - at, aligned)
                : load_sent<T>(place_in(mailbox(boxes, boxes.rank), half, peer * boxes.slot, pack));
#pragma unroll
        for (int lane = 0; lane < kLanes; ++lane) total[lane] += to_float(values.lanes[lane]);
      }
      FloatPack<T> sum;
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) sum.lanes[lane] = from_float<T>(total[lane]);
      store_some(y + at, sum, size - at, true);
    }
  }
  if (threadIdx.x == 0) boxes.calls[blockIdx.x] = call + 1;  // all have read it: they have met
}

// y [world · size] = the ranks' x in their order, each copied into its rank's own mailbox and read from there.
template <typename T>
__global__ void __launch_bounds__(kPeerBlock) stage_and_gather(
    const T* x, T* y, int64_t size, Mailboxes boxes, bool aligned) {
  constexpr int kLanes = FloatPack<T>::kLanes;
  const int call = boxes.calls[blockIdx.x];
  const int64_t half = kFlagBytes + (call & 1) * boxes.slot;
  const int64_t packs = ceil_div(size, kLanes);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kPeerBlock + threadIdx.x;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kPeerBlock;
  const bool even = size % kLanes == 0;  // else only the first rank's part of y begins at a whole pack
  for (int64_t pack = first; pack < packs; pack += step) {
    const int64_t at = pack * kLanes;
    const FloatPack<T> values = load_some(x + at, size - at, aligned);
    if (boxes.world > 1) store_pack(reinterpret_cast<T*>(place_in(mailbox(boxes, boxes.rank), half, 0, pack)), values);
    store_some(y + boxes.rank * size + at, values, size - at, even || boxes.rank == 0);
  }
  announce(boxes, call + 1);
  await(boxes, call + 1);
  for (int hop = 1; hop < boxes.world; ++hop) {
    const int peer = (boxes.rank + hop) % boxes.world;
    for (int64_t pack = first; pack < packs; pack += step) {
      const int64_t at = pack * kLanes;
      const FloatPack<T> values = load_sent<T>(place_in(mailbox(boxes, peer), half, 0, pack));
      store_some(y + peer * size + at, values, size - at, even || peer == 0);
    }
  }
  if (threadIdx.x == 0) boxes.calls[blockIdx.x] = call + 1;
}

inline Mailboxes mailboxes_of(const Tensor& addresses, const Tensor& calls, int64_t slot, int64_t rank) {
  STD_TORCH_CHECK(addresses.scalar_type() == ScalarType::Long && calls.scalar_type() == ScalarType::Int &&
                      calls.numel() == kMostBlocks && addresses.numel() <= kMostRanks,
                  "a mailbox as _ranks/mailbox.py opens it: int64 addresses, int32 calls");
  return {static_cast<const int64_t*>(addresses.const_data_ptr()), static_cast<int*>(calls.mutable_data_ptr()), slot,
          static_cast<int>(rank), static_cast<int>(addresses.numel())};
}

// The same on every rank for one size and dtype: as many blocks as the GPU can hold at once, none without elements.
template <typename T>
unsigned int peer_grid(const Tensor& x, int64_t size) {
  const int64_t packs = ceil_div(size, FloatPack<T>::kLanes);
  const int64_t most = std::min<int64_t>(2 * device_attribute(x, cudaDevAttrMultiProcessorCount), kMostBlocks);
  return static_cast<unsigned int>(std::clamp<int64_t>(ceil_div(packs, kPeerBlock), 1, most));
}

// Fills y with the sum over ranks: of x where stride is 0, else of its piece for this rank.
template <typename T>
Tensor pushed_sum(const Tensor& x, int64_t size, int64_t stride, Tensor y, const Mailboxes& boxes) {
  const T* from = input_pointer<T>(x);
  const bool aligned = is_aligned16(from) && stride % FloatPack<T>::kLanes == 0;
  push_and_sum<T><<<peer_grid<T>(x, size), kPeerBlock, 0, current_stream(x)>>>(
      from, output_pointer<T>(y), size, stride, boxes, aligned);
  return y;
}

}  // namespace groundspeed
