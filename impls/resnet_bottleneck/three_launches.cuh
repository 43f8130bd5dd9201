// The block as three launches of the implicit GEMM: the last has the residual in its epilogue.
#pragma once

#include "../_cuda/conv_launch.cuh"

namespace groundspeed {

// What the operator takes: x contiguous, weights packed by conv_weights.py, biases in float32.
struct Bottleneck {
  Tensor x;
  Tensor reduce;
  Tensor reduce_bias;
  Tensor spatial;
  Tensor spatial_bias;
  Tensor expand;
  Tensor expand_bias;
  Tensor ones;  // a scale for every convolution: batch normalisation is in the weights
};

inline Tensor images_like(const Tensor& x, int64_t channels) {
  return torch::stable::new_empty(x, {x.size(0), channels, x.size(2), x.size(3)});
}

inline Tensor three_launches(const char* name, const Bottleneck& b) {
  const Tensor narrow = images_like(b.x, b.reduce_bias.size(0));
  const Tensor filtered = images_like(b.x, b.spatial_bias.size(0));
  const Tensor y = torch::stable::empty_like(b.x);
  STD_TORCH_CHECK(b.expand_bias.size(0) == b.x.size(1), name, ": expected as many channels out as in");
  launch_convolution(name, {b.x, b.reduce, b.ones, b.reduce_bias, b.x, narrow,
                            conv_shape(name, b.x, b.reduce, b.reduce_bias, 1), ConvEnd::kRelu});
  launch_convolution(name, {narrow, b.spatial, b.ones, b.spatial_bias, narrow, filtered,
                            conv_shape(name, narrow, b.spatial, b.spatial_bias, 3), ConvEnd::kRelu});
  launch_convolution(name, {filtered, b.expand, b.ones, b.expand_bias, b.x, y,
                            conv_shape(name, filtered, b.expand, b.expand_bias, 1), ConvEnd::kAddRelu});
  return y;
}

}  // namespace groundspeed
