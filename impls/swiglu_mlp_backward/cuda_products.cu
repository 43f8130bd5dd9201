// Six products of our own in row-major factors, one kernel for all that lies between them, transposes where a factor is
// on its side.
//
// Compute-bound: 12·T·D·H FLOPs. The products (product.cuh: wgmma on Hopper, mma.sync, or the CUDA cores in float32)
// want [M, K] times [K, N]. The weights are transposed beforehand; x and h are transposed here, 2·T·(D + H) elements of
// traffic, and the kernel between the products reads grad_h, z and u and writes grad_z, grad_u and h: 9·T·H elements in
// all for eager's 15·T·H. The second part of grad_x is added to the first, rounded, in the epilogue. Predicted: level
// with eager in 16 bits at T = 2048, where the traffic saved pays for products behind cuBLAS's; behind it at T = 4096
// and D = 4096. float32 runs on the CUDA cores; predicted: behind eager, as our float32 product is.
//
// Reached on nvidia-h200 at 968ac8c4: 486 µs for bfloat16 T=2048,D=2048,H=5504, 571 TFLOP/s, 73 % of the compute
// ceiling, 1.00 times as fast as torch_eager.
#include <tuple>

#include "../_cuda/elementwise.cuh"
#include "../_cuda/product.cuh"
#include "../_cuda/row_block.cuh"
#include "../_cuda/transpose_packs.cuh"

namespace {

using namespace groundspeed;

constexpr const char* kName = "swiglu_mlp_backward/cuda_products";

// The sums, added to what there was before where there was anything: one epilogue, so that products are compiled once.
template <typename T>
struct Onto : NoColumns {
  static constexpr int kSides = 1;

  const T* before;  // [m, n], or null
  int n;

  bool aligned() const { return is_aligned16(before); }

  template <bool kAligned, int kCount>
  __device__ __forceinline__ void apply(const Columns<kCount>&, int, int row, int column,
                                        float (&values)[kCount]) const {
    if (before == nullptr) return;
    float added[kCount];
    load_run<kAligned>(before + static_cast<int64_t>(row) * n + column, added);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] += added[i];
  }
};

// left · right, and before where it is given: a fresh [m, n].
Tensor product(const Tensor& left, const Tensor& right, const Tensor* before = nullptr) {
  const Operands<1, 1> p = operands_of<1, 1>({left}, {{{right}}}, kName);
  multiply(p, kName, [&](auto zero) {
    using T = decltype(zero);
    return Onto<T>{{}, before == nullptr ? nullptr : input_pointer<T>(*before), static_cast<int>(p.n)};
  });
  return p.c[0];
}

// A contiguous [columns, rows] of a contiguous [rows, columns].
Tensor transposed(const Tensor& x) {
  const Tensor y = result_like(x, x.size(1), x.size(0));
  if (x.numel() == 0) return y;
  const auto turn = [&](auto word) {
    using Word = decltype(word);
    launch_transpose_packs(input_pointer<Word>(x), output_pointer<Word>(y), 1, x.size(0), x.size(1), current_stream(x));
  };
  x.scalar_type() == ScalarType::Float ? turn(uint32_t{}) : turn(uint16_t{});
  check_launch(kName);
  return y;
}

template <typename T>
struct Between {
  const T* grad_h;
  const T* z;
  const T* u;
  T* grad_z;
  T* grad_u;
  T* h;
  int64_t size;
};

template <int kLanes, typename T>
__device__ __forceinline__ void join_lanes(const Between<T>& b, int64_t at) {
  float grad[kLanes], z[kLanes], u[kLanes];
  load_lanes(b.grad_h + at, grad);
  load_lanes(b.z + at, z);
  load_lanes(b.u + at, u);
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
    const float s = sigmoid(z[i]), silu = z[i] * s, slope = fmaf(silu, 1.0f - s, s);
    z[i] = grad[i] * u[i] * slope;
    grad[i] *= silu;
    u[i] *= silu;
  }
  store_lanes(b.grad_z + at, z);
  store_lanes(b.grad_u + at, grad);
  store_lanes(b.h + at, u);
}

constexpr int kThreads = 256;

template <typename T>
__global__ void __launch_bounds__(kThreads) swiglu_backward_join(Between<T> b, bool packs) {
  constexpr int kLanes = FloatPack<T>::kLanes;
  const int64_t first = global_thread() * kLanes;
  if (packs && first + kLanes <= b.size) return join_lanes<kLanes>(b, first);
  for (int i = 0; i < kLanes && first + i < b.size; ++i) join_lanes<1>(b, first + i);
}

// grad_z, grad_u and h [T, H].
std::tuple<Tensor, Tensor, Tensor> join(const Tensor& grad_h, const Tensor& z, const Tensor& u) {
  Tensor grad_z = torch::stable::empty_like(z), grad_u = torch::stable::empty_like(z);
  Tensor h = torch::stable::empty_like(z);
  if (z.numel() == 0) return {grad_z, grad_u, h};
  dispatch_float(z, kName, [&](auto zero) {
    using T = decltype(zero);
    const Between<T> b = {input_pointer<T>(grad_h), input_pointer<T>(z),       input_pointer<T>(u),
                          output_pointer<T>(grad_z), output_pointer<T>(grad_u), output_pointer<T>(h),
                          z.numel()};
    const bool packs = is_aligned16(b.grad_h) && is_aligned16(b.z) && is_aligned16(b.u) && is_aligned16(b.grad_z) &&
                       is_aligned16(b.grad_u) && is_aligned16(b.h);
    const unsigned grid = covering_grid(ceil_div(b.size, FloatPack<T>::kLanes), kThreads);
    swiglu_backward_join<<<grid, kThreads, 0, current_stream(z)>>>(b, packs);
  });
  check_launch(kName);
  return {grad_z, grad_u, h};
}

// gate_turned and up_turned are [H, D], down_turned is [D, H].
std::tuple<Tensor, Tensor, Tensor, Tensor> run(Tensor grad_output, Tensor x, Tensor z, Tensor u, Tensor gate_turned,
                                               Tensor up_turned, Tensor down_turned) {
  STD_TORCH_CHECK(x.dim() == 2 && z.dim() == 2 && u.dim() == 2 && z.size(0) == x.size(0) && u.size(0) == x.size(0) &&
                      u.size(1) == z.size(1) && z.scalar_type() == x.scalar_type() &&
                      u.scalar_type() == x.scalar_type(),
                  kName, ": expected x [T, D], z and u [T, H] of one dtype");
  const Tensor grads = torch::stable::contiguous(grad_output);
  const Tensor grad_h = product(grads, down_turned);
  const auto [grad_z, grad_u, h] = join(grad_h, torch::stable::contiguous(z), torch::stable::contiguous(u));
  const Tensor x_turned = transposed(torch::stable::contiguous(x));
  const Tensor grad_down = product(transposed(h), grads);
  const Tensor grad_gate = product(x_turned, grad_z), grad_up = product(x_turned, grad_u);
  const Tensor first_part = product(grad_z, gate_turned);
  return {product(grad_u, up_turned, &first_part), grad_gate, grad_up, grad_down};
}

}  // namespace

GROUNDSPEED_OPERATOR(
    "run(Tensor grad_output, Tensor x, Tensor z, Tensor u, Tensor gate_turned, Tensor up_turned, Tensor down_turned) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    run)
