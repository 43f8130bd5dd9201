// Rows through a ring in shared memory: several rows on their way while one is in registers.
//
// Memory-bound: 2·M·N·itemsize bytes. What cuda_pipeline does with a row ahead, copied by every thread for itself, one
// thread does here by bulk copies of chunks (cp.async.bulk), as many ahead as 208 KiB of shared memory hold: three
// rows of 32768 bfloat16. A row's chunks are given back as soon as it is in registers. Rows of whole 16-byte packs, at
// most 32768 elements; compute capability 9.0.
//
// Predicted: cuda_pipeline's time where both hold one row ahead, a few per cent less for 16 bits. On an H200 it is level
// with it at 8192 elements, and takes 22 µs for 512 rows of 32768 bfloat16, where cuda_pipeline takes 18: copies by one
// thread, in bulk, bring nothing here that each thread's own do not.
//
// Reached on nvidia-h200 at 968ac8c4: 134 µs for float32 M=8192,N=8192, 4.01 TB/s, 94 % of the memory ceiling, 2.06
// times as fast as torch_eager.
#include "../_cuda/softmax_ring.cuh"

namespace {

using namespace groundspeed;

Tensor run(Tensor input) {
  STD_TORCH_CHECK(input.dim() == 2, "softmax/cuda_ring: expected [M, N], got ", input.dim(), " dimensions");
  return elementwise(input, "softmax/cuda_ring", [&](const auto* x, auto* y, int64_t size, cudaStream_t stream) {
    using T = std::remove_pointer_t<decltype(y)>;
    const int64_t length = input.size(1);
    STD_TORCH_CHECK(rows_are_packs<T>(length, x, y),
                    "softmax/cuda_ring: expected rows of whole 16-byte packs at multiples of 16 bytes");
    launch_softmax_ring<false>(input, SoftmaxRows<T>{x, nullptr, y, size / length, static_cast<int>(length)}, stream);
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x) -> Tensor", run)
