// Bias and GELU on one tile by warps of their own, while the tensor cores multiply the next.
//
// Compute-bound: 2·M·N·K FLOPs. GELU costs some 25 instructions an element; applied by the threads that multiply, the
// tensor cores would idle for some 6000 cycles a tile of 128 × 256, by count, which takes 65536 to multiply at K = 4096
// and 16384 at K = 1024. Here they wait for some 200 (product_wgmma.cuh), and z is rounded to 16 bits in between, as
// eager rounds it.
// Predicted on Hopper: the time of a product without activation, that is eager less 2·M·N·itemsize bytes of traffic
// and a launch. float32 runs on the CUDA cores with the activation in registers; predicted: behind eager, since
// cuBLAS is ahead of our float32 product by more than the activation takes.
//
// Reached on nvidia-h200 at 968ac8c4: 188 µs for bfloat16 M=4096,N=4096,K=4096, 732 TFLOP/s, 94 % of the compute
// ceiling, 1.08 times as fast as torch_eager.
#include "../_cuda/product.cuh"

namespace {

using namespace groundspeed;

constexpr const char* kName = "matmul_gelu/cuda_overlapped";

Tensor run(Tensor a, Tensor b, Tensor bias) {
  const Operands<1, 1> p = operands_of<1, 1>({a}, {{{b}}}, kName);
  STD_TORCH_CHECK(bias.dim() == 1 && bias.size(0) == p.n && bias.scalar_type() == a.scalar_type(), kName,
                  ": expected bias [N] in the dtype of A");
  const Tensor row = torch::stable::contiguous(bias);
  multiply(p, kName, [&](auto zero) {
    using T = decltype(zero);
    return BiasGelu<T>{{static_cast<const T*>(row.data_ptr())}};
  });
  return p.c[0];
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor a, Tensor b, Tensor bias) -> Tensor", run)
