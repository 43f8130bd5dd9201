// The whole block in one launch: rows that the first convolution leaves stay in shared memory, sums that the second
// leaves become operands of the third in registers.
//
// With m = N·C·H·W elements and E = 4C, x is read and y written, 8m, and x once more from L2 as the residual;
// cuda_fused moves 16m. What lies between the convolutions is computed once: a thread block walks down consecutive
// tiles and keeps the rows that the next tile's taps reach (block.cuh). No plane is turned around: fragments of x are
// read transposed.
// One block of 8 warps a multiprocessor, 243 registers a thread, nothing spilled; for C = 64 and E = 256 its shared
// memory holds 136 KiB of weights, 49 KiB of rows and 40 KiB of x under way, 226.5 of 227 KiB.
//
// This is for 16-bit types, up to 64 inner channels, planes of a multiple of 8 pixels, and as much of both as shared
// memory holds. All else goes by cuda_fused's three launches: for C = 128 and E = 512 the weights alone are 544 KiB.
//
// Predicted for N = 128, C = 64, 56 × 56 in 16 bits, from a copy rate of 4.3 TB/s and the 486 TFLOP/s that mma.sync
// reaches in matmul/cuda_mma: 96 µs for the traffic, 117 µs for 57 GFLOP, of which each block reduces a tile that the
// block before it has as well; where the smaller is hidden by half, 165 µs, 6.6 times eager.
#include <algorithm>

#include "block.cuh"
#include "three_launches.cuh"

namespace {

using namespace groundspeed;

constexpr char kName[] = "resnet_bottleneck/cuda_block";

// Whether the kernel takes planes in whole groups of eight pixels and so many channels.
bool takes(const Bottleneck& b, const Tensor& y, const ConvShape& wide) {
  return b.x.scalar_type() != ScalarType::Float && wide.outputs <= kInner && wide.plane() % kPixelGroup == 0 &&
         is_aligned16(b.x.const_data_ptr()) && is_aligned16(y.const_data_ptr()) && wide.width <= kMostSize &&
         wide.channels <= kMostSize;
}

bool fits_shared(const Tensor& x, const BlockPlan& plan) {
  return plan.shared_bytes() <= device_attribute(x, cudaDevAttrMaxSharedMemoryPerBlockOptin);
}

void expect_packed(const Tensor& weights, const Tensor& x, int slabs) {
  STD_TORCH_CHECK(weights.numel() == static_cast<int64_t>(slabs) * kInner * kConvDepth &&
                      weights.scalar_type() == x.scalar_type() && is_aligned16(weights.const_data_ptr()),
                  kName, ": weights are not packed for these channels, this side and this dtype");
}

Tensor one_launch(const Bottleneck& b, const Tensor& y, const BlockPlan& plan) {
  expect_packed(b.spatial, b.x, kTaps);
  expect_packed(b.expand, b.x, plan.slabs);
  STD_TORCH_CHECK(b.spatial_bias.size(0) == plan.inner.channels && b.expand_bias.size(0) == plan.wide.channels, kName,
                  ": expected as many inner channels behind the second convolution, and as many out as in");
  const int processors = device_attribute(b.x, cudaDevAttrMultiProcessorCount);
  dispatch_float(b.x, kName, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (sizeof(T) == 2) {
      const BlockOperands<T> operands = {input_pointer<T>(b.x),
                                         input_pointer<T>(b.reduce),
                                         input_pointer<T>(b.spatial),
                                         input_pointer<T>(b.expand),
                                         input_pointer<float>(b.reduce_bias),
                                         input_pointer<float>(b.spatial_bias),
                                         input_pointer<float>(b.expand_bias),
                                         output_pointer<T>(y)};
      const auto kernel = bottleneck_block_kernel<T>;
      const int blocks = std::min(plan.tiles, processors), bytes = plan.shared_bytes();
      allow_shared(kName, reinterpret_cast<const void*>(kernel), bytes);
      kernel<<<blocks, kBlockThreads, bytes, current_stream(b.x)>>>(operands, plan);
    }
  });
  check_launch(kName);
  return y;
}

Tensor run(Tensor x, Tensor reduce, Tensor reduce_bias, Tensor spatial, Tensor spatial_bias, Tensor expand,
           Tensor expand_bias, Tensor ones) {
  const Bottleneck b = {torch::stable::contiguous(x), reduce, reduce_bias, spatial, spatial_bias, expand, expand_bias,
                        ones};
  const ConvShape wide = conv_shape(kName, b.x, reduce, reduce_bias, 1);
  const Tensor y = torch::stable::empty_like(b.x);
  if (y.numel() == 0) return y;
  if (takes(b, y, wide)) {
    const BlockPlan plan = block_plan(wide);
    if (fits_shared(b.x, plan)) return one_launch(b, y, plan);
  }
  return three_launches(kName, b);
}

}  // namespace

GROUNDSPEED_OPERATOR(
    "run(Tensor x, Tensor reduce, Tensor reduce_bias, Tensor spatial, Tensor spatial_bias, Tensor expand, "
    "Tensor expand_bias, Tensor ones) -> Tensor",
    run)
