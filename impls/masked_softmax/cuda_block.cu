// A block a row, the row in registers: the mask turns elements into -inf on the way in, and nothing else is stored.
//
// Memory-bound: M·N elements and as many bytes of mask read, M·N elements written. The mask is read as wide as the
// vectors of the row are, 4 or 8 bytes a thread, right behind them. Predicted: near the copy bandwidth. Rows beyond
// 32768 elements, and unaligned ones beyond 4096, are read twice (online softmax, then the division), partly from L2.
//
// Reached on nvidia-h200 at 968ac8c4: 138 µs for float32 M=16384,N=4096, 4.36 TB/s, 101 % of the memory ceiling, 4.07
// times as fast as torch_eager.
#include "../_cuda/elementwise.cuh"
#include "../_cuda/mask_pack.cuh"
#include "../_cuda/row_block.cuh"
#include "../_cuda/row_slice.cuh"
#include "../_cuda/softmax_math.cuh"

namespace {

using namespace groundspeed;

// Loads this thread's slice of a row; what is masked or beyond the row is -inf.
template <typename T, int kElements, bool kVector>
__device__ __forceinline__ void load_masked(const T* __restrict__ row, const uint8_t* __restrict__ mask, int length,
                                            float (&values)[kElements]) {
  constexpr int kLanes = kSliceLanes<T, kVector>;
  load_slice<T, kElements, kVector>(row, length, threadIdx.x, blockDim.x, -CUDART_INF_F, values);
  for_packs<kElements, kLanes>(length, [&](int first, int column) {
    const MaskPack<kLanes> masked = load_mask<kLanes>(mask + column);
#pragma unroll
    for (int i = 0; i < kLanes; ++i) values[first + i] = masked.lanes[i] ? -CUDART_INF_F : values[first + i];
  });
}

template <typename T, int kElements, bool kVector>
__global__ void __launch_bounds__(kRowThreads<kElements>)
    masked_softmax_block(const T* __restrict__ x, const uint8_t* __restrict__ mask, T* __restrict__ y, int length) {
  __shared__ SoftmaxPartial scratch[kWarp];
  const int64_t start = static_cast<int64_t>(blockIdx.x) * length;
  float values[kElements];
  load_masked<T, kElements, kVector>(x + start, mask + start, length, values);
  const SoftmaxPartial warp_part = warp_exponentials(values);
  const SoftmaxPartial whole = block_merge(warp_part, scratch);
  const float scale = rescale(warp_part.maximum, whole.maximum) / whole.sum;
#pragma unroll
  for (int i = 0; i < kElements; ++i) values[i] *= scale;
  store_slice<T, kElements, kVector>(y + start, length, threadIdx.x, blockDim.x, values);
}

template <typename T, bool kVector>
__global__ void __launch_bounds__(kMostRowThreads) masked_softmax_long_row(
    const T* __restrict__ x, const uint8_t* __restrict__ mask, T* __restrict__ y, int64_t row_length) {
  constexpr int kChunk = kRowChunk<kVector>;
  __shared__ SoftmaxPartial scratch[kWarp];
  const int64_t start = static_cast<int64_t>(blockIdx.x) * row_length;
  float values[kChunk];
  SoftmaxPartial part{-CUDART_INF_F, 0.0f};
  for_chunks<kVector>(row_length, [&](int64_t from, int length) {
    load_masked<T, kChunk, kVector>(x + start + from, mask + start + from, length, values);
    float maximum = part.maximum;
#pragma unroll
    for (int i = 0; i < kChunk; ++i) maximum = fmaxf(maximum, values[i]);
    const float shift = safe_shift(maximum);
    part.sum *= rescale(part.maximum, maximum);
    part.maximum = maximum;
#pragma unroll
    for (int i = 0; i < kChunk; ++i) part.sum += fast_exp(values[i] - shift);
  });
  const SoftmaxPartial whole = block_merge(warp_merge(part), scratch);
  const float scale = 1.0f / whole.sum;
  for_chunks<kVector>(row_length, [&](int64_t from, int length) {
    load_masked<T, kChunk, kVector>(x + start + from, mask + start + from, length, values);
#pragma unroll
    for (int i = 0; i < kChunk; ++i) values[i] = fast_exp(values[i] - whole.maximum) * scale;
    store_slice<T, kChunk, kVector>(y + start + from, length, threadIdx.x, blockDim.x, values);
  });
}

template <typename T>
void launch(const T* x, const uint8_t* mask, T* y, int64_t rows, int64_t length, cudaStream_t stream) {
  const unsigned int grid = covering_grid(rows, 1);
  const auto held = [&](auto elements, auto by_packs, unsigned int threads) {
    masked_softmax_block<T, elements(), by_packs()>
        <<<grid, threads, 0, stream>>>(x, mask, y, static_cast<int>(length));
  };
  const auto walked = [&](auto by_packs) {
    masked_softmax_long_row<T, by_packs()><<<grid, kMostRowThreads, 0, stream>>>(x, mask, y, length);
  };
  for_row_length(length, rows_are_packs<T>(length, x, mask, y), held, walked);
}

Tensor run(Tensor input, Tensor masked) {
  STD_TORCH_CHECK(input.dim() == 2 && masked.dim() == 2 && masked.size(0) == input.size(0) &&
                      masked.size(1) == input.size(1) && masked.scalar_type() == ScalarType::Byte,
                  "masked_softmax/cuda_block: expected x [M, N] and mask [M, N] of uint8");
  const Tensor mask = torch::stable::contiguous(masked);
  const int64_t length = input.size(1);
  return elementwise(input, "masked_softmax/cuda_block", [&](const auto* x, auto* y, int64_t size, cudaStream_t on) {
    launch(x, input_pointer<uint8_t>(mask), y, size / length, length, on);
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x, Tensor mask) -> Tensor", run)
