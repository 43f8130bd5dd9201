// What the backward kernels of attention share: operands, gradients, and delta, the sum of grad ∘ out over each row.
#pragma once

#include <array>
#include <tuple>

#include "attention_operands.cuh"
#include "reduce.cuh"

namespace groundspeed {

struct AttentionGradients {
  Tensor grad;  // of the output; rows as with_dense_rows wants them, like q, k, v and out
  Tensor q;
  Tensor k;
  Tensor v;
  Tensor out;
  Tensor lse;    // [B, H, S] float32, contiguous
  Tensor delta;  // [B, H, S] float32, uninitialised
  std::array<Tensor, 3> grads;  // of q, k and v: contiguous, uninitialised
  int64_t batches;
  int heads;
  int length;
  int size;  // D
};

inline AttentionGradients attention_gradients(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v,
                                              const Tensor& out, const Tensor& lse, const char* name) {
  for (const Tensor* tensor : {&grad, &k, &v, &out}) {
    STD_TORCH_CHECK(q.dim() == 4 && tensor->dim() == 4 && tensor->scalar_type() == q.scalar_type(), name,
                    ": expected grad_output, q, k, v and out of [B, H, S, D] and one dtype");
    for (int64_t d = 0; d < 4; ++d) {
      STD_TORCH_CHECK(q.size(d) == tensor->size(d), name, ": grad_output, q, k, v and out must have one shape");
    }
  }
  const int64_t batches = q.size(0), heads = q.size(1), length = q.size(2);
  STD_TORCH_CHECK(lse.dim() == 3 && lse.numel() == batches * heads * length && lse.scalar_type() == ScalarType::Float,
                  name, ": expected lse [B, H, S] of float32");
  // Kernels count rows in int, and heads in the grid's x, blocks of rows in its y.
  STD_TORCH_CHECK(length < (1 << 19) && batches * heads < (1ll << 31), name,
                  ": expected fewer than 2^19 positions and 2^31 heads");
  const int64_t itemsize = q.scalar_type() == ScalarType::Float ? 4 : 2;
  const auto like_q = [&] { return torch::stable::new_empty(q, {batches, heads, length, q.size(3)}); };
  const Tensor saved = torch::stable::contiguous(lse);
  return {with_dense_rows(grad, itemsize),
          with_dense_rows(q, itemsize),
          with_dense_rows(k, itemsize),
          with_dense_rows(v, itemsize),
          with_dense_rows(out, itemsize),
          saved,
          torch::stable::empty_like(saved),
          {like_q(), like_q(), like_q()},
          batches,
          static_cast<int>(heads),
          static_cast<int>(length),
          static_cast<int>(q.size(3))};
}

// What kernels take: rows of all operands, and the saved numbers of all rows one behind the other.
template <typename T>
struct BackwardHeads {
  Heads<T> grad;
  Heads<T> q;
  Heads<T> k;
  Heads<T> v;
  const float* lse;
  const float* delta;
  int heads;
  int length;
  int size;
  float scale;  // of exponents of 2
  bool causal;

  __device__ __forceinline__ const float* levels(int64_t pair) const { return lse + pair * length; }
  __device__ __forceinline__ const float* shifts(int64_t pair) const { return delta + pair * length; }
};

template <typename T>
BackwardHeads<T> backward_heads(const AttentionGradients& all, bool causal) {
  return {heads_of<T>(all.grad),
          heads_of<T>(all.q),
          heads_of<T>(all.k),
          heads_of<T>(all.v),
          static_cast<const float*>(all.lse.const_data_ptr()),
          static_cast<const float*>(all.delta.const_data_ptr()),
          all.heads,
          all.length,
          all.size,
          attention_scale(all.size),
          causal};
}

constexpr float kLogOf2 = 0.69314718055994530942f;  // from the scale of exponents of 2 to that of the scores
constexpr float kLog2OfE = 1.44269504088896340736f;

// Blocks of rows, the heads in x.
inline dim3 backward_grid(const AttentionGradients& all, int rows_each) {
  return dim3(static_cast<unsigned int>(all.batches * all.heads),
              static_cast<unsigned int>((all.length + rows_each - 1) / rows_each));
}

constexpr int kDeltaRows = 8;  // a block: a warp a row

template <typename T>
__global__ void __launch_bounds__(kDeltaRows* kWarp)
    attention_backward_delta(Heads<T> grad, Heads<T> out, float* __restrict__ delta, int heads, int length, int size) {
  const int row = blockIdx.y * kDeltaRows + threadIdx.x / kWarp;
  if (row >= length) return;
  const T* left = grad.start(blockIdx.x, heads) + row * grad.row;
  const T* right = out.start(blockIdx.x, heads) + row * out.row;
  float sum = 0.0f;
  for (int d = threadIdx.x % kWarp; d < size; d += kWarp) sum = fmaf(to_float(left[d]), to_float(right[d]), sum);
  sum = warp_sum(sum);
  if (threadIdx.x % kWarp == 0) delta[static_cast<int64_t>(blockIdx.x) * length + row] = sum;
}

template <typename T>
void launch_attention_delta(AttentionGradients& all, cudaStream_t stream) {
  attention_backward_delta<T><<<backward_grid(all, kDeltaRows), kDeltaRows * kWarp, 0, stream>>>(
      heads_of<T>(all.grad), heads_of<T>(all.out), static_cast<float*>(all.delta.mutable_data_ptr()), all.heads,
      all.length, all.size);
}

template <typename Kernel>
void allow_shared_bytes(Kernel kernel, int bytes, const char* name) {
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  STD_TORCH_CHECK(error == cudaSuccess, name, ": ", cudaGetErrorString(error));
}

}  // namespace groundspeed
