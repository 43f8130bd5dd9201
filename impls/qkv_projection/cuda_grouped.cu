// One launch over the tiles of all three projections, each written to its own tensor.
//
// Compute-bound: 6·T·D·N FLOPs. On Hopper blocks stay and take a tile of any projection in turn, so the GPU is idle
// at the end of the list once instead of three times, and x stays in L2 from one projection to the next. The weights
// need not be packed: a block picks its matrix by the number of its tile (product_wgmma.cuh). Predicted: eager less
// two launches and less the idle ends, 1.1 times its speed at 4096 × 1024 × 1024 and 1.0 at 4096³, where the products
// are all there is. Float32 has no tensor cores without TF32, and its products are behind cuBLAS's: 0.85 times eager's
// speed on an H200 at 968ac8c4.
//
// Reached on nvidia-h200 at 968ac8c4: 543 µs for bfloat16 T=4096,D=4096,N=4096, 760 TFLOP/s, 97 % of the compute
// ceiling, 0.986 times as fast as torch_eager.
#include "../_cuda/product.cuh"

#include <tuple>

namespace {

using namespace groundspeed;

constexpr const char* kName = "qkv_projection/cuda_grouped";

std::tuple<Tensor, Tensor, Tensor> run(Tensor x, Tensor wq, Tensor wk, Tensor wv) {
  const Tensor rows = torch::stable::contiguous(x);  // once for all three
  const Operands<3, 1> p = operands_of<3, 1>({rows, rows, rows}, {{{wq}, {wk}, {wv}}}, kName);
  multiply(p, kName, [](auto) { return Store{}; });
  return {p.c[0], p.c[1], p.c[2]};
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x, Tensor wq, Tensor wk, Tensor wv) -> (Tensor, Tensor, Tensor)", run)
