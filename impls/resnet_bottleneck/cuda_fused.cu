// Three launches of the implicit GEMM, each with bias, ReLU and, in the last, the residual in its epilogue.
//
// With m = N·C·H·W elements and E = 4C, 16m move where eager moves 48m: x twice, two intermediate results written and
// read, y. 34·C FLOPs for 16 elements: memory-bound for C = 64, near the ridge of an H200 for C = 128 in 16 bits. A
// 1 × 1 convolution is the same kernel with one tap; its window is turned around for one tap's products only, which is
// why its tensor cores wait for shared memory (conv_mma.cuh).
//
// Predicted, from a copy rate of 4.3 TB/s: with N = 128, C = 64, 56 × 56 in float16 the passes that eager makes besides
// its convolutions, 36m, take 430 µs, its convolutions 12m and 143 µs at least; this takes 191 µs for 16m if its loads
// keep up with memory and more likely 1.5 times that: about twice eager's speed.
//
// Reached on nvidia-h200 at 968ac8c4: 522 µs for float16 N=128,C=64,E=256,H=56,W=56, 788 GB/s, 18 % of the memory
// ceiling, 2.10 times as fast as torch_eager.
#include "three_launches.cuh"

namespace {

using namespace groundspeed;

Tensor run(Tensor x, Tensor reduce, Tensor reduce_bias, Tensor spatial, Tensor spatial_bias, Tensor expand,
           Tensor expand_bias, Tensor ones) {
  return three_launches("resnet_bottleneck/cuda_fused", {torch::stable::contiguous(x), reduce, reduce_bias, spatial,
                                                         spatial_bias, expand, expand_bias, ones});
}

}  // namespace

GROUNDSPEED_OPERATOR(
    "run(Tensor x, Tensor reduce, Tensor reduce_bias, Tensor spatial, Tensor spatial_bias, Tensor expand, "
    "Tensor expand_bias, Tensor ones) -> Tensor",
    run)
