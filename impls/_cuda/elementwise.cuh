// What elementwise kernels share: the host side around a launch, and grid sizes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "float_dispatch.cuh"
#include "float_pack.cuh"
#include "torch_stable.cuh"

namespace groundspeed {

constexpr int kPackBytes = 16;  // the widest access of one thread: LDG.128, STG.128

template <typename T>
const T* input_pointer(const Tensor& tensor) {
  return static_cast<const T*>(tensor.const_data_ptr());
}

template <typename T>
T* output_pointer(const Tensor& tensor) {
  return static_cast<T*>(tensor.mutable_data_ptr());
}

__host__ __device__ constexpr int64_t ceil_div(int64_t items, int64_t size) { return (items + size - 1) / size; }

// Blocks for one item a thread. items must be positive: a grid of zero blocks is an error.
inline unsigned int covering_grid(int64_t items, int block) {
  const int64_t blocks = ceil_div(items, block);
  STD_TORCH_CHECK(blocks <= 0x7fffffff, "a grid of ", blocks, " blocks is beyond CUDA's limit");
  return static_cast<unsigned int>(blocks);
}

inline int device_attribute(const Tensor& tensor, cudaDeviceAttr attribute) {
  int value = 0;
  const cudaError_t error = cudaDeviceGetAttribute(&value, attribute, tensor.get_device_index());
  STD_TORCH_CHECK(error == cudaSuccess, "cudaDeviceGetAttribute: ", cudaGetErrorString(error));
  return value;
}

// Blocks for a grid-stride loop: no more than the device can hold at once, no more than there are items.
inline unsigned int resident_grid(const Tensor& tensor, int64_t items, int block) {
  const int64_t processors = device_attribute(tensor, cudaDevAttrMultiProcessorCount);
  const int64_t blocks_each = device_attribute(tensor, cudaDevAttrMaxThreadsPerMultiProcessor) / block;
  return static_cast<unsigned int>(std::min(ceil_div(items, block), processors * blocks_each));
}

// Calls launch(input pointer, output pointer, elements, stream) for x's dtype and returns the output, of x's shape.
// A non-contiguous x is copied first; nothing is launched for an empty one.
template <typename Launch>
Tensor elementwise(const Tensor& x, const char* kernel, Launch&& launch) {
  const Tensor source = torch::stable::contiguous(x);
  Tensor y = torch::stable::empty_like(source);
  const int64_t size = source.numel();
  if (size == 0) return y;
  dispatch_float(source, kernel, [&](auto tag) {
    using T = decltype(tag);
    launch(input_pointer<T>(source), output_pointer<T>(y), size, current_stream(source));
  });
  check_launch(kernel);
  return y;
}

__device__ __forceinline__ int64_t global_thread() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ int64_t grid_threads() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

}  // namespace groundspeed
