// Rows and their masks through a ring in shared memory: the next ones on their way while one is in registers.
//
// Memory-bound: M·N elements and as many bytes of mask read, M·N elements written. In cuda_block a row of 32768 elements
// fills a multiprocessor's registers, so that nothing is loaded while it is reduced and written. Here one thread copies
// chunks of a row and of its mask into shared memory (cp.async.bulk), as many ahead as 208 KiB hold, and gets them back
// as soon as they are in registers. Rows of whole 16-byte packs, the mask's too, at most 32768 elements; compute
// capability 9.0.
//
// Predicted: 95 % of the memory ceiling for float32 rows of 32768, where cuda_block reaches 86 %. On an H200 it is level
// with cuda_block there, 86 %, and behind it on shorter rows: the ring buys nothing.
//
// Reached on nvidia-h200 at 968ac8c4: 147 µs for float32 M=16384,N=4096, 4.10 TB/s, 95 % of the memory ceiling, 3.82
// times as fast as torch_eager.
#include "../_cuda/softmax_ring.cuh"

namespace {

using namespace groundspeed;

Tensor run(Tensor input, Tensor masked) {
  STD_TORCH_CHECK(input.dim() == 2 && masked.dim() == 2 && masked.size(0) == input.size(0) &&
                      masked.size(1) == input.size(1) && masked.scalar_type() == ScalarType::Byte,
                  "masked_softmax/cuda_ring: expected x [M, N] and mask [M, N] of uint8");
  const Tensor contiguous_mask = torch::stable::contiguous(masked);
  return elementwise(input, "masked_softmax/cuda_ring", [&](const auto* x, auto* y, int64_t size, cudaStream_t stream) {
    using T = std::remove_pointer_t<decltype(y)>;
    const int64_t length = input.size(1);
    const uint8_t* mask = input_pointer<uint8_t>(contiguous_mask);
    STD_TORCH_CHECK(rows_are_packs<uint8_t>(length, x, mask, y),
                    "masked_softmax/cuda_ring: expected rows of whole 16-byte packs at multiples of 16 bytes");
    launch_softmax_ring<true>(input, SoftmaxRows<T>{x, mask, y, size / length, static_cast<int>(length)}, stream);
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x, Tensor mask) -> Tensor", run)
