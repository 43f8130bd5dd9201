// Implicit GEMM with the whole operator in its epilogue: x and the residual are read once, y is written once.
//
// With n elements in x, 3n move where eager moves 9n, one launch where it makes four. 18·C FLOPs an output: with 64
// channels of 16 bits, 192 FLOP/B, about the ridge of an H200; with more, compute-bound. 16-bit types go to tensor
// cores by mma.sync (conv_mma.cuh), whose fragments want channels last: planes are turned around on their way into
// shared memory, once for all nine taps. float32 stays on the CUDA cores (conv_fma.cuh). The scale and shift of the
// normalisation are applied to float32 sums, with no rounding in between.
//
// Predicted, from a copy rate of 4.3 TB/s and 770 TFLOP/s of cuBLAS: with N = 128, C = 64, 56 × 56 in float16 eager
// takes 38 µs to multiply and 84 µs for the 7n elements after it; this kernel, at three quarters of the 486 TFLOP/s
// that mma.sync reaches in matmul/cuda_mma, 81 µs: 1.5 times eager. If cuDNN converts planes to channels last and back,
// eager takes 48 µs more: 2.1 times. In float32 both are bound by the CUDA cores, and only the passes are saved.
//
// Reached on nvidia-h200 at 968ac8c4: 135 µs for float16 N=128,C=64,O=64,H=56,W=56, 220 TFLOP/s, 29 % of the compute
// ceiling, 2.27 times as fast as torch_eager.
#include "../_cuda/conv_launch.cuh"

namespace {

using namespace groundspeed;

constexpr char kName[] = "conv_bn_relu_add/cuda_implicit";

Tensor run(Tensor input, Tensor weights, Tensor scale, Tensor shift, Tensor residual) {
  const Tensor x = torch::stable::contiguous(input);
  const ConvShape shape = conv_shape(kName, x, weights, shift, 3);
  STD_TORCH_CHECK(residual.dim() == 4 && residual.size(1) == shape.outputs && residual.size(0) == x.size(0) &&
                      residual.size(2) == x.size(2) && residual.size(3) == x.size(3) &&
                      residual.scalar_type() == x.scalar_type(),
                  kName, ": expected a residual [N, O, H, W] of x's dtype");
  const Tensor added = torch::stable::contiguous(residual);
  const Tensor y = torch::stable::empty_like(added);
  launch_convolution(kName, {x, weights, scale, shift, added, y, shape, ConvEnd::kReluAdd});
  return y;
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x, Tensor weights, Tensor scale, Tensor shift, Tensor residual) -> Tensor", run)
