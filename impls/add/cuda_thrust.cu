// Thrust's binary thrust::transform over device memory on torch's stream, not waiting for it.
//
// Bound by memory: 2·N elements read, N written. Thrust comes with the toolkit; it chooses the elements a thread takes
// by the bytes that must be in flight. Prediction: level with the vectorised kernels for large N.
//
// Reached on nvidia-h200 at 968ac8c4: 222 µs for float16 N=134217728, 3.62 TB/s, 82 % of the memory ceiling, 0.812
// times as fast as torch_eager.
#include <thrust/execution_policy.h>
#include <thrust/transform.h>

#include "../_cuda/elementwise.cuh"

namespace {

using namespace groundspeed;

template <typename T>
struct Add {
  __device__ T operator()(T a, T b) const { return from_float<T>(to_float(a) + to_float(b)); }
};

Tensor run(Tensor a, Tensor b) {
  const Tensor other = torch::stable::contiguous(b);
  STD_TORCH_CHECK(a.numel() == b.numel() && a.scalar_type() == b.scalar_type(),
                  "add/cuda_thrust: expected two vectors of one length and dtype");
  return elementwise(a, "add/cuda_thrust", [&](const auto* in, auto* out, int64_t size, cudaStream_t stream) {
    using T = std::remove_const_t<std::remove_reference_t<decltype(*in)>>;
    thrust::transform(thrust::cuda::par_nosync.on(stream), in, in + size, input_pointer<T>(other), out, Add<T>{});
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor a, Tensor b) -> Tensor", run)
