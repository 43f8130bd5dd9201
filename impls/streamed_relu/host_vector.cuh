// What both files share: ReLU on the device, and a host vector's place there.
#pragma once

#include "../_cuda/elementwise.cuh"

namespace groundspeed {

// A comparison with NaN is false, so NaN passes; fmaxf would drop it.
template <typename T>
__device__ __forceinline__ T rectified(T value) {
  return to_float(value) < 0.0f ? from_float<T>(0.0f) : value;
}

template <typename T>
__device__ __forceinline__ FloatPack<T> rectified(FloatPack<T> pack) {
#pragma unroll
  for (int lane = 0; lane < FloatPack<T>::kLanes; ++lane) pack.lanes[lane] = rectified(pack.lanes[lane]);
  return pack;
}

// An output of x's shape and dtype on the device of `place`, an empty tensor there: x itself names no device.
inline Tensor output_beside(const Tensor& place, const Tensor& x) {
  STD_TORCH_CHECK(x.is_cpu() && place.is_cuda(), "streamed_relu: expected x in host memory and a place on the device");
  return torch::stable::new_empty(place, x.sizes(), x.scalar_type());
}

inline void check_cuda(cudaError_t error, const char* what) {
  STD_TORCH_CHECK(error == cudaSuccess, what, ": ", cudaGetErrorString(error));
}

}  // namespace groundspeed
