// A block a row, the row in registers, so that x crosses DRAM once for rows of up to 32768 elements.
//
// Memory-bound: 2·M·N·itemsize bytes. A thread holds 8, 16 or 32 elements, all of its 16-byte loads issued before the
// first use; maximum and sum are merged as one pair, so the block meets at a single barrier. Predicted: near the copy
// bandwidth as long as several blocks share a multiprocessor, since one block's loads run under another's
// exponentials; at 32768 elements one block fills the register file and nothing overlaps, which cuda_pipeline mends.
// Longer rows are read twice (online softmax, then the division): 3·M·N·itemsize bytes, minus what L2 still holds.
//
// Reached on nvidia-h200 at 968ac8c4: 126 µs for float32 M=8192,N=8192, 4.25 TB/s, 99 % of the memory ceiling, 2.19
// times as fast as torch_eager (unstable).
#include "../_cuda/float_dispatch.cuh"
#include "../_cuda/row_slice.cuh"
#include "../_cuda/softmax_math.cuh"
#include "../_cuda/torch_stable.cuh"

namespace {

using namespace groundspeed;

constexpr int kMostThreads = 1024;
constexpr int kMostElements = 32;  // a thread, so that 1024 threads stay within 64 registers each
constexpr int kChunk = 16;         // elements a thread takes at a time from a row that does not fit

// The most threads that launch_for_length gives a row held kElements to a thread.
template <int kElements>
constexpr int kThreadLimit = kElements < kMostElements ? 256 : kMostThreads;

template <typename T, int kElements, bool kVector>
__global__ void __launch_bounds__(kThreadLimit<kElements>)
    softmax_block_kernel(const T* __restrict__ x, T* __restrict__ y, int length) {
  __shared__ SoftmaxPartial scratch[kWarp];
  const int64_t start = static_cast<int64_t>(blockIdx.x) * length;
  float values[kElements];
  load_slice<T, kElements, kVector>(x + start, length, threadIdx.x, blockDim.x, -CUDART_INF_F, values);
  const SoftmaxPartial warp_part = warp_exponentials(values);
  const SoftmaxPartial whole = block_merge(warp_part, scratch);
  const float scale = rescale(warp_part.maximum, whole.maximum) / whole.sum;
#pragma unroll
  for (int i = 0; i < kElements; ++i) values[i] *= scale;
  store_slice<T, kElements, kVector>(y + start, length, threadIdx.x, blockDim.x, values);
}

template <typename T, bool kVector>
__global__ void __launch_bounds__(kMostThreads)
    softmax_block_online_kernel(const T* __restrict__ x, T* __restrict__ y, int64_t length) {
  __shared__ SoftmaxPartial scratch[kWarp];
  const int64_t start = static_cast<int64_t>(blockIdx.x) * length;
  const int64_t chunk = static_cast<int64_t>(blockDim.x) * kChunk;
  const auto chunk_length = [&](int64_t from) {
    return static_cast<int>(length - from < chunk ? length - from : chunk);
  };
  float values[kChunk];

  SoftmaxPartial part{-CUDART_INF_F, 0.0f};
  for (int64_t from = 0; from < length; from += chunk) {
    const int here = chunk_length(from);
    load_slice<T, kChunk, kVector>(x + start + from, here, threadIdx.x, blockDim.x, -CUDART_INF_F, values);
    float maximum = part.maximum;
#pragma unroll
    for (int i = 0; i < kChunk; ++i) maximum = fmaxf(maximum, values[i]);
    const float shift = safe_shift(maximum);
    part.sum *= rescale(part.maximum, maximum);
    part.maximum = maximum;
#pragma unroll
    for (int i = 0; i < kChunk; ++i) part.sum += fast_exp(values[i] - shift);
  }
  const SoftmaxPartial whole = block_merge(warp_merge(part), scratch);
  const float scale = 1.0f / whole.sum;

  for (int64_t from = 0; from < length; from += chunk) {
    const int here = chunk_length(from);
    load_slice<T, kChunk, kVector>(x + start + from, here, threadIdx.x, blockDim.x, -CUDART_INF_F, values);
#pragma unroll
    for (int i = 0; i < kChunk; ++i) values[i] = fast_exp(values[i] - whole.maximum) * scale;
    store_slice<T, kChunk, kVector>(y + start + from, here, threadIdx.x, blockDim.x, values);
  }
}

template <typename T, int kElements>
void launch(const T* x, T* y, int64_t rows, int64_t length, cudaStream_t stream) {
  const bool vector = length % FloatPack<T>::kLanes == 0 && is_aligned16(x) && is_aligned16(y);
  const auto kernel = vector ? softmax_block_kernel<T, kElements, true> : softmax_block_kernel<T, kElements, false>;
  const int64_t warps = (length + kElements * kWarp - 1) / (kElements * kWarp);
  kernel<<<static_cast<unsigned>(rows), static_cast<unsigned>(warps * kWarp), 0, stream>>>(x, y,
                                                                                          static_cast<int>(length));
}

template <typename T>
void launch_online(const T* x, T* y, int64_t rows, int64_t length, cudaStream_t stream) {
  const bool vector = length % FloatPack<T>::kLanes == 0 && is_aligned16(x) && is_aligned16(y);
  const auto kernel = vector ? softmax_block_online_kernel<T, true> : softmax_block_online_kernel<T, false>;
  kernel<<<static_cast<unsigned>(rows), kMostThreads, 0, stream>>>(x, y, length);
}

// Few elements a thread for short rows, so that a row still fills several warps.
template <typename T>
void launch_for_length(const T* x, T* y, int64_t rows, int64_t length, cudaStream_t stream) {
  if (length <= 8 * kThreadLimit<8>) return launch<T, 8>(x, y, rows, length, stream);
  if (length <= 16 * kThreadLimit<16>) return launch<T, 16>(x, y, rows, length, stream);
  if (length <= kMostElements * kMostThreads) return launch<T, kMostElements>(x, y, rows, length, stream);
  return launch_online<T>(x, y, rows, length, stream);
}

Tensor run(Tensor input) {
  STD_TORCH_CHECK(input.dim() == 2, "softmax/cuda_block: expected [M, N], got ", input.dim(), " dimensions");
  const Tensor x = torch::stable::contiguous(input);
  Tensor y = torch::stable::empty_like(x);
  if (x.numel() == 0) return y;
  dispatch_float(x, "softmax/cuda_block", [&](auto zero) {
    using T = decltype(zero);
    launch_for_length(static_cast<const T*>(x.data_ptr()), static_cast<T*>(y.data_ptr()), x.size(0), x.size(1),
                      current_stream(x));
  });
  check_launch("softmax/cuda_block");
  return y;
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x) -> Tensor", run)
