// Two 16-byte vectors a thread, a covering grid and no loop.
//
// Bound by memory: N elements read, N written; bits are moved, whatever the dtype. Prediction: the copy ceiling.
//
// Reached on nvidia-h200 at 968ac8c4: 249 µs for float32 N=134217728, 4.31 TB/s, 101 % of the memory ceiling, 1.01
// times as fast as torch_eager.
#include "../_cuda/elementwise.cuh"

namespace {

using namespace groundspeed;

constexpr int kBlock = 128;
constexpr int kVectors = 2;  // in flight a thread

template <typename T>
constexpr int kTile = kBlock * kVectors * FloatPack<T>::kLanes;

template <typename T>
__global__ void __launch_bounds__(kBlock)
    copy_packs(const T* __restrict__ x, T* __restrict__ y, int64_t size, bool aligned) {
  constexpr int kLanes = FloatPack<T>::kLanes;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kTile<T>;
  if (aligned && first + kTile<T> <= size) {
    const int64_t mine = first + threadIdx.x * kLanes;
    FloatPack<T> packs[kVectors];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) packs[v] = load_pack(x + mine + v * kBlock * kLanes);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) store_pack(y + mine + v * kBlock * kLanes, packs[v]);
  } else {
#pragma unroll 1
    for (int e = threadIdx.x; e < kTile<T> && first + e < size; e += kBlock) y[first + e] = x[first + e];
  }
}

Tensor run(Tensor x) {
  return elementwise(x, "copy/cuda_vec", [](const auto* in, auto* out, int64_t size, cudaStream_t stream) {
    using T = std::remove_pointer_t<decltype(out)>;
    const bool aligned = is_aligned16(in) && is_aligned16(out);
    copy_packs<<<covering_grid(size, kTile<T>), kBlock, 0, stream>>>(in, out, size, aligned);
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x) -> Tensor", run)
