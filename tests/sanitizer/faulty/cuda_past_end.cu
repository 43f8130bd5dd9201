// Right, and one thread writes the element behind the last one, which no comparison of outputs shows.
#include "../_cuda/elementwise.cuh"

namespace {

using namespace groundspeed;

constexpr int kBlock = 256;

template <typename T>
__global__ void past_end(const T* __restrict__ x, T* __restrict__ y, int64_t size) {
  const int64_t i = global_thread();
  const int64_t from = i < size ? i : size - 1;
  if (i <= size) y[i] = x[from] + x[from];
}

Tensor run(Tensor x) {
  return elementwise(x, "past_end", [](const auto* in, auto* out, int64_t size, cudaStream_t stream) {
    past_end<<<covering_grid(size, kBlock), kBlock, 0, stream>>>(in, out, size);
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x) -> Tensor", run)
