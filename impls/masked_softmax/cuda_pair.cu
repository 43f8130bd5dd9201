// Two multiprocessors a row, and the next two rows and their masks always on their way into shared memory.
//
// Memory-bound: M·N elements and as many bytes of mask read, M·N elements written. In cuda_block a row of 32768
// elements fills a multiprocessor's registers, so that nothing is loaded while it is reduced and written. Here a
// cluster of two blocks, one a multiprocessor, stays and walks over rows, half of the columns each: one half in
// registers, those of the next two rows in a ring in shared memory or on their way there (cp.async). A warp has 512
// neighbouring columns, whose mask is 16 bytes a lane, so that masks are copied as wide as rows are and no barrier
// but the warp's is needed. The blocks tell each other maximum and sum of their halves (st.async).
//
// Predicted: 95 % of the memory ceiling for float32 rows of 32768, where cuda_block reaches 86 %: a half's 16384
// exponentials are some 1000 cycles of the 8000 that its bytes take. Rows of 16385 to 32768 elements, a multiple of 16
// for the mask's sake; compute capability 9.0.
//
// Reached on nvidia-h200 at 968ac8c4: 149 µs for float32 M=2048,N=32768, 4.06 TB/s, 94 % of the memory ceiling, 3.43
// times as fast as torch_eager.
#include "../_cuda/elementwise.cuh"
#include "../_cuda/mask_pack.cuh"
#include "../_cuda/row_pair.cuh"
#include "../_cuda/softmax_math.cuh"

namespace {

using namespace groundspeed;

constexpr int kAhead = 2;  // rows, one for each place of PairTurn
static_assert(kPairElements == kPackBytes, "a lane copies the mask of as many columns as it has");

// Half a row and its mask, both in order of columns.
template <typename T>
struct alignas(128) Ahead {
  T values[kPairColumns];
  uint8_t mask[kPairColumns];
};

// In one order in both blocks, so that they round alike.
__device__ __forceinline__ SoftmaxPartial merge(SoftmaxPartial first, SoftmaxPartial second) {
  const float maximum = fmaxf(first.maximum, second.maximum);
  return {maximum, first.sum * rescale(first.maximum, maximum) + second.sum * rescale(second.maximum, maximum)};
}

template <typename T>
__global__ void __launch_bounds__(kMostRowThreads)
    masked_softmax_pair(const T* __restrict__ x, const uint8_t* __restrict__ mask, T* __restrict__ y, int length,
                        int count) {
  using Slice = PairSlice<T, kWarp>;
  constexpr int kPacks = Slice::kPacks, kLanes = Slice::kLanes;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ SoftmaxPartial scratch[2][kWarp];  // in turn: the next row's barrier lies between two uses
  __shared__ PairInbox inbox;
  Ahead<T>* ring = reinterpret_cast<Ahead<T>*>(memory);
  open_inbox(inbox);
  const uint32_t rank = cluster_rank();
  const PairHalf half(length, rank);
  const Slice slice(half.columns);
  const int step = static_cast<int>(gridDim.x) / kPair;
  const int mask_column = static_cast<int>(threadIdx.x) * kPackBytes;  // copied by this thread, read by its warp
  const auto fetch = [&](int row, Ahead<T>& place) {
    if (row < count) {
      const int64_t start = static_cast<int64_t>(row) * length + half.from;
      copy_slice(place.values, x + start, slice);
      if (mask_column < half.columns) {
        copy_async16(shared_address(place.mask + mask_column), mask + start + mask_column, true);
      }
    }
    commit_copies();  // of nothing too, so that wait_copies counts right
  };
  int row = static_cast<int>(blockIdx.x) / kPair;
  fetch(row, ring[0]);
  fetch(row + step, ring[1]);
  cluster_wait();
  PairTurn turn;
#pragma unroll 1
  for (; row < count; row += step, turn.next()) {
    Ahead<T>& place = ring[turn.place];
    wait_copies<kAhead - 1>();
    __syncwarp();  // the other lanes have waited for their bytes of the mask as well
    float values[kPairElements];
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const bool has = slice.has(i);
      const FloatPack<T> pack = has ? shared_pack(place.values + Slice::column(i)) : filled_pack<T>(-CUDART_INF_F);
      const MaskPack<kLanes> masked = has ? load_mask<kLanes>(place.mask + Slice::column(i)) : MaskPack<kLanes>{};
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        values[i * kLanes + lane] = masked.lanes[lane] ? -CUDART_INF_F : to_float(pack.lanes[lane]);
      }
    }
    __syncwarp();  // every lane has read: nothing is overwritten too early
    fetch(row + kAhead * step, place);
    const SoftmaxPartial warp_part = warp_exponentials(values);
    const SoftmaxPartial own = block_merge(warp_part, scratch[turn.place]);
    const float2 numbers = exchange({own.maximum, own.sum}, inbox, turn, rank);
    const SoftmaxPartial other{numbers.x, numbers.y};
    const SoftmaxPartial whole = rank == 0 ? merge(own, other) : merge(other, own);
    const float scale = rescale(warp_part.maximum, whole.maximum) / whole.sum;
    T* result = y + static_cast<int64_t>(row) * length + half.from;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (slice.has(i)) {
        FloatPack<T> pack;
#pragma unroll
        for (int lane = 0; lane < kLanes; ++lane) pack.lanes[lane] = from_float<T>(values[i * kLanes + lane] * scale);
        store_pack(result + Slice::column(i), pack);
      }
    }
  }
}

Tensor run(Tensor input, Tensor masked) {
  STD_TORCH_CHECK(input.dim() == 2 && masked.dim() == 2 && masked.size(0) == input.size(0) &&
                      masked.size(1) == input.size(1) && masked.scalar_type() == ScalarType::Byte,
                  "masked_softmax/cuda_pair: expected x [M, N] and mask [M, N] of uint8");
  const int64_t length = input.size(1);
  check_pair_row(length, "masked_softmax/cuda_pair");
  const Tensor contiguous_mask = torch::stable::contiguous(masked);
  return elementwise(input, "masked_softmax/cuda_pair", [&](const auto* x, auto* y, int64_t size, cudaStream_t stream) {
    using T = std::remove_pointer_t<decltype(y)>;
    const uint8_t* mask = input_pointer<uint8_t>(contiguous_mask);
    STD_TORCH_CHECK(length % kPackBytes == 0 && is_aligned16(x) && is_aligned16(mask) && is_aligned16(y),
                    "masked_softmax/cuda_pair: rows of the mask must be whole packs of 16 bytes, and every tensor "
                    "begin at one");
    launch_pairs(masked_softmax_pair<T>, input, size / length, kAhead * static_cast<int>(sizeof(Ahead<T>)), stream, x,
                 mask, y, static_cast<int>(length));
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x, Tensor mask) -> Tensor", run)
