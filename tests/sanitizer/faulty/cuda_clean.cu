// Honest: one element a thread.
#include "../_cuda/elementwise.cuh"

namespace {

using namespace groundspeed;

constexpr int kBlock = 256;

template <typename T>
__global__ void twice(const T* __restrict__ x, T* __restrict__ y, int64_t size) {
  const int64_t i = global_thread();
  if (i < size) y[i] = x[i] + x[i];
}

Tensor run(Tensor x) {
  return elementwise(x, "twice", [](const auto* in, auto* out, int64_t size, cudaStream_t stream) {
    twice<<<covering_grid(size, kBlock), kBlock, 0, stream>>>(in, out, size);
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x) -> Tensor", run)
