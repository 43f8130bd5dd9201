// Passes each element through a neighbour's place in shared memory and waits at no barrier.
#include "../_cuda/elementwise.cuh"

namespace {

using namespace groundspeed;

constexpr int kBlock = 256;

template <typename T>
__global__ void race(const T* __restrict__ x, T* __restrict__ y, int64_t size) {
  __shared__ T tile[kBlock];
  const int64_t i = global_thread();
  if (i < size) tile[kBlock - 1 - threadIdx.x] = x[i] + x[i];
  if (i < size) y[i] = tile[(threadIdx.x + kBlock / 2) % kBlock];
}

Tensor run(Tensor x) {
  return elementwise(x, "race", [](const auto* in, auto* out, int64_t size, cudaStream_t stream) {
    race<<<covering_grid(size, kBlock), kBlock, 0, stream>>>(in, out, size);
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x) -> Tensor", run)
