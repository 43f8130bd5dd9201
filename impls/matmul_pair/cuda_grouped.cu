// Both products in one launch, their tiles in one list that the multiprocessors work off.
//
// Compute-bound: 4·M·N·K FLOPs. On Hopper blocks stay and take a tile of either product in turn, so the GPU is idle
// at the end of the list once, not twice, and there is one launch; nothing is stacked, a block picks the factors by
// the number of its tile (product_wgmma.cuh). Tiles are 128 × 128 where 128 × 256 would leave multiprocessors idle.
// Predicted: up to twice eager's speed where one product fills half of the GPU, level where each fills it many times.
//
// Reached on nvidia-h200 at 968ac8c4: 356 µs for bfloat16 M=4096,N=4096,K=4096, 772 TFLOP/s, 99 % of the compute
// ceiling, 0.986 times as fast as torch_eager.
#include "../_cuda/product.cuh"

#include <tuple>

namespace {

using namespace groundspeed;

constexpr const char* kName = "matmul_pair/cuda_grouped";

std::tuple<Tensor, Tensor> run(Tensor a1, Tensor b1, Tensor a2, Tensor b2) {
  const Operands<2, 1> p = operands_of<2, 1>({a1, a2}, {{{b1}, {b2}}}, kName);
  multiply(p, kName, [](auto) { return Store{}; });
  return {p.c[0], p.c[1]};
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor a1, Tensor b1, Tensor a2, Tensor b2) -> (Tensor, Tensor)", run)
