// The operands of C = A·B as a kernel needs them: checked, contiguous, with room for C.
#pragma once

#include "../_cuda/torch_stable.cuh"

namespace groundspeed {

struct Product {
  Tensor a;  // [m, k], row-major
  Tensor b;  // [k, n], row-major
  Tensor c;  // [m, n], row-major, uninitialised
  int64_t m;
  int64_t n;
  int64_t k;
};

inline Product product_of(const Tensor& left, const Tensor& right, const char* name) {
  STD_TORCH_CHECK(left.dim() == 2 && right.dim() == 2 && left.size(1) == right.size(0), name,
                  ": expected A [M, K] and B [K, N]");
  STD_TORCH_CHECK(left.scalar_type() == right.scalar_type(), name, ": expected A and B of one dtype");
  constexpr int64_t kLongest = 1ll << 30;  // kernels count rows, columns and K in int, offsets in int64_t
  STD_TORCH_CHECK(left.size(0) < kLongest && left.size(1) < kLongest && right.size(1) < kLongest, name,
                  ": expected M, N and K below 2^30");
  const int64_t m = left.size(0);
  const int64_t n = right.size(1);
  return {torch::stable::contiguous(left),
          torch::stable::contiguous(right),
          torch::stable::new_empty(left, {m, n}),
          m,
          n,
          left.size(1)};
}

inline int multiprocessors() {
  int device = 0;
  int count = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  STD_TORCH_CHECK(error == cudaSuccess, "cannot ask the GPU for its multiprocessors: ", cudaGetErrorString(error));
  return count;
}

}  // namespace groundspeed
