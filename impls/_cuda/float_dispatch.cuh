// From a tensor's runtime dtype to a C++ scalar type: float32, float16, bfloat16.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "torch_stable.cuh"

namespace groundspeed {

// Calls `body(T{})` with the scalar type of `tensor`; anything else is an error that names `kernel`.
template <typename Body>
void dispatch_float(const Tensor& tensor, const char* kernel, Body&& body) {
  switch (tensor.scalar_type()) {
    case ScalarType::Float:
      return body(float{});
    case ScalarType::Half:
      return body(__half{});
    case ScalarType::BFloat16:
      return body(__nv_bfloat16{});
    default:
      STD_TORCH_CHECK(false, kernel, ": expected float32, float16 or bfloat16");
  }
}

}  // namespace groundspeed
