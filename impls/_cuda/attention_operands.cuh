// q, k and v of attention as kernels need them: [B, H, S, D] in strides of 16 bytes, with room for the output.
#pragma once

#include <cmath>

#include "float_pack.cuh"
#include "torch_stable.cuh"

namespace groundspeed {

// Rows of one tensor: element d of row s of head h of batch b is data[b·batch + h·head + s·row + d]. T is const for
// inputs.
template <typename T>
struct HeadRows {
  T* data;
  int64_t batch;
  int64_t head;
  int64_t row;

  __device__ __forceinline__ T* start(int64_t pair, int heads) const {
    return data + pair / heads * batch + pair % heads * head;
  }
};

template <typename T>
using Heads = HeadRows<const T>;

struct AttentionOperands {
  Tensor q;
  Tensor k;
  Tensor v;
  Tensor out;  // [B, H, S, D], rows as with_dense_rows wants them, uninitialised
  int64_t batches;
  int heads;
  int length;
  int size;  // D
};

// The tensor as it lies where vectors of 16 bytes can read its rows, else a contiguous copy.
inline Tensor with_dense_rows(const Tensor& tensor, int64_t itemsize) {
  bool dense = tensor.stride(3) == 1 && is_aligned16(tensor.const_data_ptr());
  for (int64_t d = 0; d < 3; ++d) dense = dense && tensor.stride(d) * itemsize % 16 == 0;
  return dense ? tensor : torch::stable::contiguous(tensor);
}

inline AttentionOperands attention_operands(const Tensor& q, const Tensor& k, const Tensor& v, const char* name) {
  STD_TORCH_CHECK(q.dim() == 4 && k.dim() == 4 && v.dim() == 4, name, ": expected q, k and v of [B, H, S, D]");
  for (int64_t d = 0; d < 4; ++d) {
    STD_TORCH_CHECK(q.size(d) == k.size(d) && q.size(d) == v.size(d), name, ": q, k and v must have one shape, "
                    "dimension ", d, " is ", q.size(d), ", ", k.size(d), " and ", v.size(d));
  }
  STD_TORCH_CHECK(q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type(), name,
                  ": q, k and v must have one dtype");
  // Kernels count rows in int, and heads in the grid's x, blocks of queries in its y.
  STD_TORCH_CHECK(q.size(2) < (1 << 21) && q.size(0) * q.size(1) < (1ll << 31), name,
                  ": expected fewer than 2^21 positions and 2^31 heads");
  const int64_t itemsize = q.scalar_type() == ScalarType::Float ? 4 : 2;
  return {with_dense_rows(q, itemsize),
          with_dense_rows(k, itemsize),
          with_dense_rows(v, itemsize),
          torch::stable::new_empty(q, {q.size(0), q.size(1), q.size(2), q.size(3)}),
          q.size(0),
          static_cast<int>(q.size(1)),
          static_cast<int>(q.size(2)),
          static_cast<int>(q.size(3))};
}

template <typename T>
Heads<T> heads_of(const Tensor& tensor) {
  return {static_cast<const T*>(tensor.const_data_ptr()), tensor.stride(0), tensor.stride(1), tensor.stride(2)};
}

template <typename T>
HeadRows<T> output_rows(const Tensor& tensor) {
  return {static_cast<T*>(tensor.mutable_data_ptr()), tensor.stride(0), tensor.stride(1), tensor.stride(2)};
}

// Blocks of queries a head; with the heads in x, one grid covers all.
inline dim3 attention_grid(const AttentionOperands& operands, int rows_each) {
  return dim3(static_cast<unsigned int>(operands.batches * operands.heads),
              static_cast<unsigned int>((operands.length + rows_each - 1) / rows_each));
}

// What turns a product q·k into the exponent of a power of two.
inline float attention_scale(int size) { return 1.44269504088896340736f / std::sqrt(static_cast<float>(size)); }

// Which block of queries this one takes: causal blocks differ in length, and the longest begin first.
__device__ __forceinline__ int query_block(bool causal) {
  return static_cast<int>(causal ? gridDim.y - 1 - blockIdx.y : blockIdx.y);
}

}  // namespace groundspeed
