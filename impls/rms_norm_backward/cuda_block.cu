// Blocks that stay and walk over rows, the rows in registers, each column's share of the weight's gradient too.
//
// Memory-bound: grad_output and x read once and grad_x written once, 3·M·N elements, as long as a row of up to 8192
// elements is held (norm_backward.cuh); the next row is on its way while this one is reduced, one barrier a row. The
// weight's gradient costs one row of float32 partial sums a block, written and read once, about 2 % of the traffic at M
// = 16384, and a second small kernel. Predicted: 90 % of the ceiling for two reads and a write at rows of 1024 to 8192
// elements; longer rows and unaligned ones are read twice, 5·M·N elements: 60 %.
//
// Reached on nvidia-h200 at 968ac8c4: 200 µs for float32 M=16384,N=4096, 4.02 TB/s, 92 % of the memory ceiling, 2.18
// times as fast as torch_eager.
#include <tuple>

#include "../_cuda/norm_backward.cuh"

namespace {

using namespace groundspeed;

std::tuple<Tensor, Tensor> run(Tensor grad_output, Tensor x, Tensor weight, Tensor rstd) {
  const NormGradients out = norm_backward<false>(grad_output, x, weight, nullptr, rstd, "rms_norm_backward/cuda_block");
  return {out.x, out.weight};
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor grad_output, Tensor x, Tensor weight, Tensor rstd) -> (Tensor, Tensor)", run)
