// Bulk copies of attention's inputs: the tensor memory accelerator fetches rows of one head of a [B, H, S, D] tensor.
#pragma once

#include "attention_operands.cuh"
#include "hopper_copy.cuh"

namespace groundspeed {

// Starts copying the box of 64 elements whose first is at `column` of `row`. Rows beyond the sequence arrive as zeros.
__device__ __forceinline__ void copy_head_rows(void* destination, const CUtensorMap* map, int column, int row, int head,
                                               int batch, CopyBarrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
      "[%6];" ::"r"(shared_address(destination)),
      "l"(map), "r"(column), "r"(row), "r"(head), "r"(batch), "r"(shared_address(barrier))
      : "memory");
}

// Describes a [B, H, S, D] tensor of 16-bit elements that with_dense_rows has passed, to be fetched in boxes of
// box_rows × 64 elements of one head, swizzled as describe_matrix says.
inline CUtensorMap describe_heads(const Tensor& tensor, int box_rows) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                             cudaEnableDefault, &found);
  STD_TORCH_CHECK(error == cudaSuccess && found == cudaDriverEntryPointSuccess,
                  "this driver has no cuTensorMapEncodeTiled: ", cudaGetErrorString(error));
  const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  const auto type = tensor.scalar_type() == ScalarType::Half ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                                             : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  cuuint64_t lengths[4];
  cuuint64_t strides[3];  // bytes, of all but the first dimension
  for (int i = 0; i < 4; ++i) lengths[i] = static_cast<cuuint64_t>(tensor.size(3 - i));
  for (int i = 0; i < 3; ++i) strides[i] = static_cast<cuuint64_t>(tensor.stride(2 - i)) * 2;
  const cuuint32_t box[4] = {64, static_cast<cuuint32_t>(box_rows), 1, 1};
  const cuuint32_t steps[4] = {1, 1, 1, 1};
  CUtensorMap map;
  const CUresult result = encode(&map, type, 4, const_cast<void*>(tensor.const_data_ptr()), lengths, strides, box,
                                 steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  STD_TORCH_CHECK(result == CUDA_SUCCESS, "cuTensorMapEncodeTiled failed with error ", static_cast<int>(result));
  return map;
}

}  // namespace groundspeed
