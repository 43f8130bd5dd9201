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
#include "../_cuda/conv_launch.cuh"

namespace {

using namespace groundspeed;

constexpr char kName[] = "resnet_bottleneck/cuda_fused";

Tensor images_like(const Tensor& x, int64_t channels) {
  return torch::stable::new_empty(x, {x.size(0), channels, x.size(2), x.size(3)});
}

// `ones` is a scale for every convolution: batch normalisation is in the weights.
Tensor run(Tensor input, Tensor reduce, Tensor reduce_bias, Tensor spatial, Tensor spatial_bias, Tensor expand,
           Tensor expand_bias, Tensor ones) {
  const Tensor x = torch::stable::contiguous(input);
  const Tensor narrow = images_like(x, reduce_bias.size(0));
  const Tensor filtered = images_like(x, spatial_bias.size(0));
  const Tensor y = torch::stable::empty_like(x);
  STD_TORCH_CHECK(expand_bias.size(0) == x.size(1), kName, ": expected as many channels out as in");
  launch_convolution(kName, {x, reduce, ones, reduce_bias, x, narrow,
                             conv_shape(kName, x, reduce, reduce_bias, 1), ConvEnd::kRelu});
  launch_convolution(kName, {narrow, spatial, ones, spatial_bias, narrow, filtered,
                             conv_shape(kName, narrow, spatial, spatial_bias, 3), ConvEnd::kRelu});
  launch_convolution(kName, {filtered, expand, ones, expand_bias, x, y,
                             conv_shape(kName, filtered, expand, expand_bias, 1), ConvEnd::kAddRelu});
  return y;
}

}  // namespace

GROUNDSPEED_OPERATOR(
    "run(Tensor x, Tensor reduce, Tensor reduce_bias, Tensor spatial, Tensor spatial_bias, Tensor expand, "
    "Tensor expand_bias, Tensor ones) -> Tensor",
    run)
