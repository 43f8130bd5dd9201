// A warp a row, the row in registers, with no shared memory and no barrier, only shuffles inside the warp.
//
// Memory-bound: 2·M·N·itemsize bytes for about 5 FLOPs an element. Every lane issues all its 16-byte loads before it
// uses the first, and warps never wait for one another. Predicted: near the copy bandwidth for short rows; for rows
// beyond a few thousand elements the registers leave few warps a multiprocessor, which is why cuda_warp.py stops at
// 4096. Rows whose length or address is no multiple of 16 bytes take element loads.
//
// Reached on nvidia-h200 at 968ac8c4: 8.26 µs for float32 M=4096,N=1024, 4.06 TB/s, 95 % of the memory ceiling, 1.28
// times as fast as torch_eager.
#include "../_cuda/float_dispatch.cuh"
#include "../_cuda/row_slice.cuh"
#include "../_cuda/softmax_math.cuh"
#include "../_cuda/torch_stable.cuh"

namespace {

using namespace groundspeed;

constexpr int kWarpsPerBlock = 4;
constexpr int kLongestRow = 4096;

template <typename T, int kElements, bool kVector>
__global__ void __launch_bounds__(kWarpsPerBlock* kWarp)
    softmax_warp_kernel(const T* __restrict__ x, T* __restrict__ y, int64_t rows, int length) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp;
  if (row >= rows) return;
  const int lane = threadIdx.x % kWarp;
  float values[kElements];
  load_slice<T, kElements, kVector>(x + row * length, length, lane, kWarp, -CUDART_INF_F, values);
  const SoftmaxPartial whole = warp_exponentials(values);
  const float scale = 1.0f / whole.sum;
#pragma unroll
  for (int i = 0; i < kElements; ++i) values[i] *= scale;
  store_slice<T, kElements, kVector>(y + row * length, length, lane, kWarp, values);
}

template <typename T, int kElements>
void launch(const T* x, T* y, int64_t rows, int length, cudaStream_t stream) {
  const bool vector = length % FloatPack<T>::kLanes == 0 && is_aligned16(x) && is_aligned16(y);
  const auto kernel = vector ? softmax_warp_kernel<T, kElements, true> : softmax_warp_kernel<T, kElements, false>;
  const unsigned blocks = static_cast<unsigned>((rows + kWarpsPerBlock - 1) / kWarpsPerBlock);
  kernel<<<blocks, kWarpsPerBlock * kWarp, 0, stream>>>(x, y, rows, length);
}

template <typename T>
void launch_for_length(const T* x, T* y, int64_t rows, int length, cudaStream_t stream) {
  if (length <= 8 * kWarp) return launch<T, 8>(x, y, rows, length, stream);
  if (length <= 16 * kWarp) return launch<T, 16>(x, y, rows, length, stream);
  if (length <= 32 * kWarp) return launch<T, 32>(x, y, rows, length, stream);
  if (length <= 64 * kWarp) return launch<T, 64>(x, y, rows, length, stream);
  return launch<T, 128>(x, y, rows, length, stream);
}

Tensor run(Tensor input) {
  STD_TORCH_CHECK(input.dim() == 2, "softmax/cuda_warp: expected [M, N], got ", input.dim(), " dimensions");
  const Tensor x = torch::stable::contiguous(input);
  const int64_t rows = x.size(0);
  const int64_t length = x.size(1);
  STD_TORCH_CHECK(length <= kLongestRow, "softmax/cuda_warp: rows of at most ", kLongestRow, " elements, got ", length);
  Tensor y = torch::stable::empty_like(x);
  if (x.numel() == 0) return y;
  dispatch_float(x, "softmax/cuda_warp", [&](auto zero) {
    using T = decltype(zero);
    launch_for_length(static_cast<const T*>(x.data_ptr()), static_cast<T*>(y.data_ptr()), rows,
                      static_cast<int>(length), current_stream(x));
  });
  check_launch("softmax/cuda_warp");
  return y;
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x) -> Tensor", run)
