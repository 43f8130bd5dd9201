// Rows that come through a ring of chunks in shared memory: one thread keeps it full by bulk copies, the warps of a
// block empty it.
//
// A block stays on its multiprocessor and walks over rows. Bulk copies (compute capability 9.0; PTX ISA:
// "cp.async.bulk", "mbarrier") need neither registers nor threads that wait, so the next rows come in while this one is
// reduced and written. Each of kThreads threads takes kRingPacks packs of a chunk; the warp behind them feeds the ring
// and takes no part in the barriers of the others. A row is at most kChunks chunks, fewer than the ring has slots, so
// that it may stay in its slots for several passes. Rows are whole 16-byte packs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "elementwise.cuh"
#include "hopper_copy.cuh"
#include "row_block.cuh"

namespace groundspeed {

constexpr int kRingPacks = 2;
constexpr int kMostRingThreads = 512;
constexpr int kRingBytes = 416 * kMostRingThreads;  // of a multiprocessor, shared by the blocks on it: 208 KiB

// Blocks that share a multiprocessor.
template <int kThreads>
constexpr int kRingResidents = kMostRingThreads / kThreads;

// Where a row begins in a ring: its first slot, and how often the ring has come round, as the parity of the barriers.
struct RingPlace {
  int slot = 0;
  uint32_t parity = 0;
};

// kExtra: bytes of a second tensor that come along with each pack.
template <int kThreads, int kExtra = 0>
struct RowRing {
  static constexpr int kChunkPacks = kThreads * kRingPacks;
  static constexpr int kChunkBytes = kChunkPacks * kPackBytes;
  static constexpr int kExtraBytes = kChunkPacks * kExtra;
  static constexpr int kSlotBytes = kChunkBytes + kExtraBytes;
  static constexpr int kSlots = kRingBytes / kRingResidents<kThreads> / kSlotBytes;
  static constexpr int kBytes = kSlots * (kSlotBytes + 2 * static_cast<int>(sizeof(CopyBarrier)));

  unsigned char* slots;
  CopyBarrier* full;   // of each slot: its chunk has come
  CopyBarrier* empty;  // of each slot: all warps are done with it
  int thread = threadIdx.x;

  __device__ explicit RowRing(unsigned char* memory)
      : slots(memory), full(reinterpret_cast<CopyBarrier*>(memory + kSlots * kSlotBytes)), empty(full + kSlots) {}

  // All threads of the block.
  __device__ void open() const {
    if (threadIdx.x == 0) {
      for (int slot = 0; slot < kSlots; ++slot) {
        barrier_init(full + slot, 1);
        barrier_init(empty + slot, kThreads / kWarp);
      }
      barrier_init_fence();
    }
    __syncthreads();
  }

  // One thread, to the end: brings every row of this block, and what goes with it.
  __device__ void feed(const void* rows, int64_t row_bytes, int64_t count, const void* extras = nullptr,
                       int64_t extra_row_bytes = 0) const {
    RingPlace place;
    for (int64_t row = blockIdx.x; row < count; row += gridDim.x) {
      const auto* from = static_cast<const unsigned char*>(rows) + row * row_bytes;
      const auto* extra = static_cast<const unsigned char*>(extras) + row * extra_row_bytes;
      int64_t left = row_bytes, extra_left = extra_row_bytes;
      for (; left > 0; left -= kChunkBytes, extra_left -= kExtraBytes, place = after(place, 1)) {
        const int slot = place.slot;
        const int bytes = static_cast<int>(left < kChunkBytes ? left : kChunkBytes);
        const int more = static_cast<int>(extra_left < kExtraBytes ? extra_left : kExtraBytes);
        barrier_wait(empty + slot, place.parity ^ 1);
        barrier_arrive_expecting(full + slot, bytes + more);
        copy_bytes(slots + slot * kSlotBytes, from, bytes, full + slot);
        if constexpr (kExtra > 0) copy_bytes(slots + slot * kSlotBytes + kChunkBytes, extra, more, full + slot);
        from += kChunkBytes;
        extra += kExtraBytes;
      }
    }
  }

  // Calls body(which of this thread's packs, its number in the row, its address, that of its extra bytes) for each of
  // this thread's packs of a row that begins at `start`. The first pass over a row waits for its chunks, the last gives
  // them back.
  template <int kChunks, bool kFirst, bool kLast, typename Body>
  __device__ __forceinline__ void pass(RingPlace start, int packs, Body&& body) const {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      if (chunk * kChunkPacks < packs) {
        const RingPlace here = after(start, chunk);
        const unsigned char* bytes = slots + here.slot * kSlotBytes;
        if constexpr (kFirst) barrier_wait(full + here.slot, here.parity);
#pragma unroll
        for (int i = 0; i < kRingPacks; ++i) {
          const int place = i * kThreads + thread;
          const int number = chunk * kChunkPacks + place;
          if (number < packs) {
            body(chunk * kRingPacks + i, number, bytes + place * kPackBytes, bytes + kChunkBytes + place * kExtra);
          }
        }
        if constexpr (kLast) {
          __syncwarp();
          if (threadIdx.x % kWarp == 0) barrier_arrive(empty + here.slot);
        }
      }
    }
  }

  // So many chunks on, fewer than there are slots.
  __device__ static RingPlace after(RingPlace place, int chunks) {
    const int slot = place.slot + chunks;
    return slot < kSlots ? RingPlace{slot, place.parity} : RingPlace{slot - kSlots, place.parity ^ 1};
  }

  // Hides the thread's index from the optimiser at the start of a row: addresses and bounds are computed anew, which is
  // cheaper than the registers that it would take to keep them all.
  __device__ void forget() { asm volatile("" : "+r"(thread)); }

  // Where the row behind one of so many packs begins.
  __device__ static RingPlace next(RingPlace place, int packs) {
    return after(place, (packs + kChunkPacks - 1) / kChunkPacks);
  }
};

// Hides what a pack holds from the optimiser, which else converts it to float once for all rows and keeps that, in twice
// the registers.
template <typename T>
__device__ __forceinline__ void keep_packed(FloatPack<T>& pack) {
  uint4& words = *reinterpret_cast<uint4*>(&pack);
  asm volatile("" : "+r"(words.x), "+r"(words.y), "+r"(words.z), "+r"(words.w));
}

// This thread's packs of a vector as long as a row: the same columns of every row are its own.
template <int kThreads, typename T, int kPacks>
__device__ __forceinline__ void load_share(const T* __restrict__ vector, int packs, FloatPack<T> (&held)[kPacks]) {
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const int number = i * kThreads + static_cast<int>(threadIdx.x);
    if (number < packs) held[i] = load_pack(vector + number * FloatPack<T>::kLanes);
  }
}

// Waits for the kThreads threads that empty a ring, and not for the one that feeds it.
template <int kThreads>
__device__ __forceinline__ void ring_sync() {
  asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory");
}

// block_sum of the threads that empty a ring.
template <int kThreads>
__device__ __forceinline__ float ring_sum(float value, float* scratch) {
  const int lane = threadIdx.x % kWarp;
  value = warp_sum(value);
  if (lane == 0) scratch[threadIdx.x / kWarp] = value;
  ring_sync<kThreads>();
  return warp_sum(lane < kThreads / kWarp ? scratch[lane] : 0.0f);
}

// Calls body(Constant<threads>, Constant<chunks a row at most>) for rows of so many bytes: few threads for short rows,
// so that a row still is some chunks and several blocks share a multiprocessor.
template <typename Body>
void for_ring(int64_t row_bytes, Body&& body) {
  constexpr int kBytesEach = 4 * kRingPacks * kPackBytes;  // of a row, a thread: four chunks
  if (row_bytes <= 128 * kBytesEach) return body(Constant<128>{}, Constant<4>{});
  if (row_bytes <= 256 * kBytesEach) return body(Constant<256>{}, Constant<4>{});
  if (row_bytes <= 512 * kBytesEach) return body(Constant<512>{}, Constant<4>{});
  STD_TORCH_CHECK(row_bytes <= 1024 * kBytesEach, "rows of at most ", 1024 * kBytesEach, " bytes, got ", row_bytes);
  body(Constant<512>{}, Constant<8>{});
}

// Launches kernel(arguments...) with as many blocks as the GPU holds, or one a row.
template <typename Ring, int kThreads, typename... Parameters, typename... Arguments>
void launch_ring(void (*kernel)(Parameters...), const Tensor& x, int64_t rows, cudaStream_t stream,
                 Arguments... arguments) {
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Ring::kBytes);
  STD_TORCH_CHECK(error == cudaSuccess, "a ring of ", Ring::kBytes, " bytes: ", cudaGetErrorString(error));
  const int64_t room = static_cast<int64_t>(device_attribute(x, cudaDevAttrMultiProcessorCount)) * kRingResidents<kThreads>;
  kernel<<<static_cast<unsigned int>(std::min(rows, room)), kThreads + kWarp, Ring::kBytes, stream>>>(arguments...);
}

}  // namespace groundspeed
