// Two products on tensor cores, GELU in the first one's epilogue, and an all-reduce that pushes partial sums.
//
// Compute-bound: 4·T·M·F/W FLOPs a rank in our own products (product.cuh), of which GELU is hidden on Hopper behind the
// next tile's; then (W-1)·T·M elements leave each rank (peers.cuh). Prediction: the time of matmul_gelu/cuda_overlapped
// for each layer, and with two ranks an all-reduce level with NCCL's.
//
// Reached on nvidia-h200 at 968ac8c4: 1.46 ms for bfloat16 W=1,T=4096,M=4096,F=16384, 755 TFLOP/s, 96 % of the compute
// ceiling, 0.998 times as fast as torch_eager.
#include "../_cuda/peers.cuh"
#include "../_cuda/product.cuh"

namespace {

using namespace groundspeed;

constexpr const char* kName = "tensor_parallel_mlp/cuda_push";

// One epilogue for both layers, so that each kernel is compiled once: bias and GELU, or nothing.
template <typename T>
struct Layer : Bias<T> {
  template <int kCount>
  using Columns = typename Bias<T>::template Columns<kCount>;

  bool hidden;

  template <bool kAligned, int kCount>
  __device__ __forceinline__ void apply(const Columns<kCount>& columns, int, int, int, float (&values)[kCount]) const {
    if (!hidden) return;
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = gelu(values[i] + columns.bias[i]);
  }
};

// `row` is loaded by the epilogue whether it is added or not: n elements.
Tensor layer(const Tensor& x, const Tensor& factor, const Tensor& row, bool hidden) {
  const Operands<1, 1> p = operands_of<1, 1>({x}, {{{factor}}}, kName);
  STD_TORCH_CHECK(row.dim() == 1 && row.size(0) == p.n && row.scalar_type() == x.scalar_type(), kName,
                  ": expected bias [N] in the dtype of x");
  multiply(p, kName, [&](auto zero) {
    using T = decltype(zero);
    return Layer<T>{{static_cast<const T*>(row.data_ptr())}, hidden};
  });
  return p.c[0];
}

Tensor run(Tensor x, Tensor up, Tensor bias, Tensor down, Tensor nothing, Tensor addresses, Tensor calls, int64_t slot,
           int64_t rank) {
  const Tensor partial = layer(layer(x, up, bias, true), down, nothing, false);
  Tensor y = torch::stable::empty_like(partial);
  const Mailboxes boxes = mailboxes_of(addresses, calls, slot, rank);
  dispatch_float(partial, kName, [&](auto tag) {
    pushed_sum<decltype(tag)>(partial, partial.numel(), 0, y, boxes);
  });
  check_launch(kName);
  return y;
}

}  // namespace

GROUNDSPEED_OPERATOR(
    "run(Tensor x, Tensor up, Tensor bias, Tensor down, Tensor nothing, Tensor addresses, Tensor calls, int slot, "
    "int rank) -> Tensor",
    run)
