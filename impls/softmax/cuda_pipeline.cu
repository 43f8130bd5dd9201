// Resident blocks, the next row on its way (cp.async) while this one is computed, so that loads never pause.
//
// Memory-bound: 2·M·N·itemsize bytes. cuda_block's loads stop while a row is reduced and written; where one row fills
// the register file nothing else hides that gap. Here a block stays and walks over rows: it copies its share of row
// i+1 asynchronously into shared memory while row i is in its registers. Every thread reads back only what it copied
// itself, so the staging needs no barrier. Predicted: no gain where many blocks share a multiprocessor (rows of up to
// a few thousand elements), a clear one at 32768. Rows that are not 16-byte aligned are loaded without staging.
//
// Reached on nvidia-h200 at 968ac8c4: 134 µs for float32 M=8192,N=8192, 4.02 TB/s, 94 % of the memory ceiling, 2.07
// times as fast as torch_eager (unstable).
#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "../_cuda/float_dispatch.cuh"
#include "../_cuda/row_slice.cuh"
#include "../_cuda/softmax_math.cuh"
#include "../_cuda/torch_stable.cuh"

namespace {

using namespace groundspeed;

constexpr int kLongestRow = 32768;

// Starts copying this thread's packs of a row into the places from which the same thread will read them.
template <typename T, int kElements, int kThreads>
__device__ __forceinline__ void stage_slice(const T* __restrict__ row, int length, int thread, T* staging) {
  constexpr int kLanes = FloatPack<T>::kLanes;
  constexpr int kStep = kThreads * kLanes;
  const int first = thread * kLanes;
#pragma unroll
  for (int i = 0; i < kElements / kLanes; ++i) {
    if (i * kStep < length - first) __pipeline_memcpy_async(staging + first + i * kStep, row + first + i * kStep, 16);
  }
}

// The threads a row are a constant so that a thread's places in a row are one base and immediate offsets: with 64
// registers a thread (1024 of them on a multiprocessor) there is no room for one address a pack.
template <typename T, int kElements, int kThreads, bool kVector>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads)
    softmax_pipeline_kernel(const T* __restrict__ x, T* __restrict__ y, int64_t rows, int length) {
  extern __shared__ __align__(16) unsigned char staging_bytes[];
  T* staging = reinterpret_cast<T*>(staging_bytes);
  // Two scratches in turn: a slow warp may still read row i's while a fast one writes row i+1's.
  __shared__ SoftmaxPartial scratch[2][kWarp];
  int turn = 0;
  int thread = threadIdx.x;

  if constexpr (kVector) {
    stage_slice<T, kElements, kThreads>(x + static_cast<int64_t>(blockIdx.x) * length, length, thread, staging);
    __pipeline_commit();
  }
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    // Hides the thread's index from the optimiser: addresses and bounds are computed anew for each row, which is
    // cheaper than the registers (and spills) that it would take to keep them all.
    asm volatile("" : "+r"(thread));
    float values[kElements];
    if constexpr (kVector) {
      __pipeline_wait_prior(0);
      load_slice<T, kElements, true>(staging, length, thread, kThreads, -CUDART_INF_F, values);
      const int64_t next = row + gridDim.x;
      if (next < rows) stage_slice<T, kElements, kThreads>(x + next * length, length, thread, staging);
      __pipeline_commit();
    } else {
      load_slice<T, kElements, false>(x + row * length, length, thread, kThreads, -CUDART_INF_F, values);
    }
    const SoftmaxPartial warp_part = warp_exponentials(values);
    const SoftmaxPartial whole = block_merge(warp_part, scratch[turn]);
    turn ^= 1;
    const float scale = rescale(warp_part.maximum, whole.maximum) / whole.sum;
#pragma unroll
    for (int i = 0; i < kElements; ++i) values[i] *= scale;
    store_slice<T, kElements, kVector>(y + row * length, length, thread, kThreads, values);
  }
}

void check(cudaError_t error) {
  STD_TORCH_CHECK(error == cudaSuccess, "softmax/cuda_pipeline: ", cudaGetErrorString(error));
}

// As many blocks as the GPU holds at once.
template <typename Kernel>
int resident_blocks(Kernel kernel, int threads, size_t shared_bytes) {
  int device = 0;
  int processors = 0;
  int per_processor = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, kernel, threads, shared_bytes));
  STD_TORCH_CHECK(per_processor > 0, "softmax/cuda_pipeline: one row does not fit on a multiprocessor of this GPU");
  return processors * per_processor;
}

template <typename T, int kElements, int kThreads>
void launch(const T* x, T* y, int64_t rows, int length, cudaStream_t stream) {
  const bool vector = length % FloatPack<T>::kLanes == 0 && is_aligned16(x) && is_aligned16(y);
  const auto kernel = vector ? softmax_pipeline_kernel<T, kElements, kThreads, true>
                             : softmax_pipeline_kernel<T, kElements, kThreads, false>;
  const size_t shared_bytes = vector ? length * sizeof(T) : 0;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)));
  const int64_t blocks = std::min<int64_t>(rows, resident_blocks(kernel, kThreads, shared_bytes));
  kernel<<<static_cast<unsigned>(blocks), kThreads, shared_bytes, stream>>>(x, y, rows, length);
}

template <typename T>
void launch_for_length(const T* x, T* y, int64_t rows, int length, cudaStream_t stream) {
  if (length <= 512) return launch<T, 8, 64>(x, y, rows, length, stream);
  if (length <= 2048) return launch<T, 8, 256>(x, y, rows, length, stream);
  if (length <= 4096) return launch<T, 16, 256>(x, y, rows, length, stream);
  if (length <= 8192) return launch<T, 32, 256>(x, y, rows, length, stream);
  if (length <= 16384) return launch<T, 32, 512>(x, y, rows, length, stream);
  return launch<T, 32, 1024>(x, y, rows, length, stream);
}

Tensor run(Tensor input) {
  STD_TORCH_CHECK(input.dim() == 2, "softmax/cuda_pipeline: expected [M, N], got ", input.dim(), " dimensions");
  const Tensor x = torch::stable::contiguous(input);
  const int64_t length = x.size(1);
  STD_TORCH_CHECK(length <= kLongestRow, "softmax/cuda_pipeline: rows of at most ", kLongestRow, " elements, got ",
                  length);
  Tensor y = torch::stable::empty_like(x);
  if (x.numel() == 0) return y;
  dispatch_float(x, "softmax/cuda_pipeline", [&](auto zero) {
    using T = decltype(zero);
    launch_for_length(static_cast<const T*>(x.data_ptr()), static_cast<T*>(y.data_ptr()), x.size(0),
                      static_cast<int>(length), current_stream(x));
  });
  check_launch("softmax/cuda_pipeline");
  return y;
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x) -> Tensor", run)
