// expf as it is written, and compiled with --use_fast_math.
// nvcc: --use_fast_math
#include "../../../../impls/_cuda/elementwise.cuh"

namespace {

using namespace groundspeed;

constexpr int kBlock = 256;

template <typename T>
__global__ void fast_math(const T* __restrict__ x, T* __restrict__ y, int64_t size) {
  const int64_t i = global_thread();
  if (i < size) y[i] = static_cast<T>(expf(static_cast<float>(x[i])));
}

Tensor run(Tensor x) {
  return elementwise(x, "fast_math", [](const auto* in, auto* out, int64_t size, cudaStream_t stream) {
    fast_math<<<covering_grid(size, kBlock), kBlock, 0, stream>>>(in, out, size);
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x) -> Tensor", run)
