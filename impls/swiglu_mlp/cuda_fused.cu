// Gate and up in one product whose epilogue joins their sums, then a product of our own for the way down.
//
// Compute-bound: 6·T·D·H FLOPs in two launches. A tile holds 128 columns of the gate and the same 128 of up; on
// Hopper they are joined by other warps while the next tile is multiplied, on values rounded to 16 bits as eager
// rounds them (product_wgmma.cuh). Of eager's 8·T·H elements of traffic between the products 2·T·H remain, and of
// five launches two. Predicted on Hopper, from products at cuBLAS's speed, 6·T·H·itemsize bytes less and three
// launches less: 1.25 times eager's speed at 2048 tokens and D = 1024, 1.15 times at D = 2048, 1.08 times at 4096
// tokens and D = 4096. float32 runs on the CUDA cores; predicted: behind eager, as our float32 product is.
//
// Reached on nvidia-h200 at 968ac8c4: 1.43 ms for bfloat16 T=4096,D=4096,H=10944, 772 TFLOP/s, 99 % of the compute
// ceiling, 1.09 times as fast as torch_eager.
#include "../_cuda/product.cuh"

namespace {

using namespace groundspeed;

constexpr const char* kName = "swiglu_mlp/cuda_fused";

Tensor run(Tensor x, Tensor gate, Tensor up, Tensor down) {
  const Operands<1, 2> joined = operands_of<1, 2>({x}, {{{gate, up}}}, kName);
  multiply(joined, kName, [](auto) { return SwiGlu{}; });
  const Operands<1, 1> last = operands_of<1, 1>({joined.c[0]}, {{{down}}}, kName);
  multiply(last, kName, [](auto) { return Store{}; });
  return last.c[0];
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x, Tensor gate, Tensor up, Tensor down) -> Tensor", run)
