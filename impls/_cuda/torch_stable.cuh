// What every CUDA implementation needs of torch, through the LibTorch stable ABI alone.
//
// torch/extension.h costs minutes of nvcc a file, the stable headers seconds; and an extension built on them keeps
// working in later torch releases. An implementation includes this file, writes a kernel and a host function `run`,
// and registers it:
//
//     GROUNDSPEED_OPERATOR("run(Tensor x) -> Tensor", run)
//
// The build passes GROUNDSPEED_NAMESPACE, a namespace made from the content, so that two versions of one file can be
// loaded side by side in one process.
#pragma once

#include <cuda_runtime.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

namespace groundspeed {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// The stream torch is working on: work launched elsewhere would not be timed, nor ordered after the inputs.
inline cudaStream_t current_stream(const Tensor& tensor) {
  void* stream = nullptr;
  STD_TORCH_CHECK(
      aoti_torch_get_current_cuda_stream(tensor.get_device_index(), &stream) == 0,
      "no current CUDA stream");
  return static_cast<cudaStream_t>(stream);
}

// A launch reports a bad configuration only here; exit status 0 proves nothing.
inline void check_launch(const char* kernel) {
  const cudaError_t error = cudaGetLastError();
  STD_TORCH_CHECK(error == cudaSuccess, kernel, ": ", cudaGetErrorString(error));
}

}  // namespace groundspeed

#define GROUNDSPEED_OPERATOR(schema, function)                                 \
  STABLE_TORCH_LIBRARY(GROUNDSPEED_NAMESPACE, library) { library.def(schema); } \
  STABLE_TORCH_LIBRARY_IMPL(GROUNDSPEED_NAMESPACE, CUDA, library) {            \
    library.impl("run", TORCH_BOX(&function));                                 \
  }
