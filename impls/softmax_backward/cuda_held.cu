// Both rows in registers as 16-byte packs, a warp a row for short ones, a block for long ones.
//
// Memory-bound: grad_output and y read once and grad_x written once, 3·M·N elements for 4 FLOPs each. A thread issues
// all its loads, up to 16 packs, before it uses the first; a warp's row needs no barrier, a block's needs one. Predicted:
// 92 % of the ceiling for two reads and a write, less from 8192 elements on, where one block fills a multiprocessor and
// its loads pause at the barrier. Rows beyond 16384 elements, and unaligned ones, are read twice, the second time mostly
// from L2.
//
// Reached on nvidia-h200 at 968ac8c4: 182 µs for float32 M=8192,N=8192, 4.43 TB/s, 101 % of the memory ceiling, 2.04
// times as fast as torch_eager.
#include "../_cuda/elementwise.cuh"
#include "../_cuda/row_block.cuh"

namespace {

using namespace groundspeed;

constexpr const char* kName = "softmax_backward/cuda_held";
constexpr int kWarpsPerBlock = 4;

template <typename T>
struct Rows {
  const T* grad;
  const T* y;
  T* grad_x;
  int64_t count;
  int64_t length;
};

// A thread's packs are `threads` apart. kWarpRow: a row a warp, else a row a block.
template <typename T, int kElements, bool kWarpRow>
__global__ void __launch_bounds__(kWarpRow ? kWarpsPerBlock* kWarp : kMostRowThreads)
    softmax_backward_held(Rows<T> rows) {
  constexpr int kLanes = FloatPack<T>::kLanes, kPacks = kElements / kLanes;
  __shared__ float scratch[kWarp];
  const int thread = kWarpRow ? threadIdx.x % kWarp : threadIdx.x;
  const int threads = kWarpRow ? kWarp : blockDim.x;
  const int64_t row = kWarpRow ? static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp : blockIdx.x;
  if (kWarpRow && row >= rows.count) return;
  const int length = static_cast<int>(rows.length);
  const int64_t start = row * rows.length + thread * kLanes;
  const int left = length - thread * kLanes;
  FloatPack<T> grads[kPacks], values[kPacks];
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const int skip = i * threads * kLanes;
    grads[i] = skip < left ? load_pack(rows.grad + start + skip) : filled_pack<T>(0.0f);
    values[i] = skip < left ? load_pack(rows.y + start + skip) : filled_pack<T>(0.0f);
  }
  float sums[2] = {};
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      sums[lane % 2] = fmaf(to_float(grads[i].lanes[lane]), to_float(values[i].lanes[lane]), sums[lane % 2]);
    }
  }
  const float sum = kWarpRow ? warp_sum(sums[0] + sums[1]) : block_sum(sums[0] + sums[1], scratch);
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const int skip = i * threads * kLanes;
    FloatPack<T> result;
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      result.lanes[lane] = from_float<T>(to_float(values[i].lanes[lane]) * (to_float(grads[i].lanes[lane]) - sum));
    }
    if (skip < left) store_pack(rows.grad_x + start + skip, result);
  }
}

template <typename T, bool kVector>
__global__ void __launch_bounds__(512) softmax_backward_walked(Rows<T> rows) {
  constexpr int kLanes = kSliceLanes<T, kVector>;
  __shared__ float scratch[kWarp];
  const T *grad = rows.grad + blockIdx.x * rows.length, *y = rows.y + blockIdx.x * rows.length;
  T* grad_x = rows.grad_x + blockIdx.x * rows.length;
  float sum = 0.0f;
#pragma unroll 4
  for (int64_t at = threadIdx.x * kLanes; at < rows.length; at += blockDim.x * kLanes) {
    float g[kLanes], values[kLanes];
    load_lanes(grad + at, g);
    load_lanes(y + at, values);
#pragma unroll
    for (int i = 0; i < kLanes; ++i) sum = fmaf(g[i], values[i], sum);
  }
  sum = block_sum(sum, scratch);
#pragma unroll 4
  for (int64_t at = threadIdx.x * kLanes; at < rows.length; at += blockDim.x * kLanes) {
    float g[kLanes], values[kLanes];
    load_lanes(grad + at, g);
    load_lanes(y + at, values);
#pragma unroll
    for (int i = 0; i < kLanes; ++i) values[i] *= g[i] - sum;
    store_lanes(grad_x + at, values);
  }
}

template <typename T>
void launch(const Rows<T>& rows, cudaStream_t stream) {
  const unsigned blocks = covering_grid(rows.count, 1), grouped = covering_grid(rows.count, kWarpsPerBlock);
  if (!rows_are_packs<T>(rows.length, rows.grad, rows.y, rows.grad_x)) {
    softmax_backward_walked<T, false><<<blocks, 512, 0, stream>>>(rows);
  } else if (rows.length <= kWarp * 8) {
    softmax_backward_held<T, 8, true><<<grouped, kWarpsPerBlock * kWarp, 0, stream>>>(rows);
  } else if (rows.length <= kWarp * 32) {
    softmax_backward_held<T, 32, true><<<grouped, kWarpsPerBlock * kWarp, 0, stream>>>(rows);
  } else if (rows.length <= kMostRowThreads * 16) {
    const unsigned threads = static_cast<unsigned>(ceil_div(rows.length, kWarp * 16)) * kWarp;
    softmax_backward_held<T, 16, false><<<blocks, threads, 0, stream>>>(rows);
  } else {
    softmax_backward_walked<T, true><<<blocks, 512, 0, stream>>>(rows);
  }
}

Tensor run(Tensor grad_output, Tensor y) {
  STD_TORCH_CHECK(y.dim() == 2 && grad_output.dim() == 2 && y.size(0) == grad_output.size(0) &&
                      y.size(1) == grad_output.size(1) && y.scalar_type() == grad_output.scalar_type(),
                  kName, ": expected grad_output and y [M, N] of one dtype");
  const Tensor grads = torch::stable::contiguous(grad_output), values = torch::stable::contiguous(y);
  Tensor grad_x = torch::stable::empty_like(values);
  if (values.numel() == 0) return grad_x;
  dispatch_float(values, kName, [&](auto zero) {
    using T = decltype(zero);
    launch<T>({input_pointer<T>(grads), input_pointer<T>(values), output_pointer<T>(grad_x), y.size(0), y.size(1)},
              current_stream(values));
  });
  check_launch(kName);
  return grad_x;
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor grad_output, Tensor y) -> Tensor", run)
