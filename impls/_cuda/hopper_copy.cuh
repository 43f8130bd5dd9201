// Hopper's bulk copies: the tensor memory accelerator fetches a box of a matrix or a run of bytes, a barrier in shared
// memory counts what has come. PTX ISA: "cp.async.bulk.tensor", "cp.async.bulk", "mbarrier".
#pragma once

#include <cuda.h>
#include <cstdint>

#include "mma.cuh"
#include "torch_stable.cuh"

namespace groundspeed {

// A barrier that flips its phase when all expected arrivals and all expected bytes have come in.
using CopyBarrier = uint64_t;

__device__ __forceinline__ void barrier_init(CopyBarrier* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to the asynchronous copies.
__device__ __forceinline__ void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void barrier_arrive(CopyBarrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Arrives, and keeps the phase open until `bytes` more have been copied.
__device__ __forceinline__ void barrier_arrive_expecting(CopyBarrier* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}

// Returns when the phase of this parity is over. A fresh barrier is in phase 0: waiting for parity 1 returns at once.
__device__ __forceinline__ void barrier_wait(CopyBarrier* barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "WAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra DONE;\n"
      "bra WAIT;\n"
      "DONE:\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

// Starts copying the box whose first element is (row, column). Elements outside the matrix arrive as zeros.
__device__ __forceinline__ void copy_box(void* destination, const CUtensorMap* map, int column, int row,
                                         CopyBarrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          shared_address(destination)),
      "l"(map), "r"(column), "r"(row), "r"(shared_address(barrier))
      : "memory");
}

// Starts copying `bytes` in one run. Both addresses and `bytes` are multiples of 16.
__device__ __forceinline__ void copy_bytes(void* destination, const void* source, int bytes, CopyBarrier* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(destination)),
               "l"(source), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}

// Describes a row-major matrix of 16-bit elements, to be fetched in boxes of box_rows × 64 elements: 128-byte rows in
// shared memory, 16-byte chunks of row r swizzled by r mod 8 (CU_TENSOR_MAP_SWIZZLE_128B). Rows must be multiples of 16
// bytes long and `data` a multiple of 16.
inline CUtensorMap describe_matrix(const void* data, CUtensorMapDataType type, int64_t rows, int64_t columns,
                                   int box_rows) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                             cudaEnableDefault, &found);
  STD_TORCH_CHECK(error == cudaSuccess && found == cudaDriverEntryPointSuccess,
                  "this driver has no cuTensorMapEncodeTiled: ", cudaGetErrorString(error));
  const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  CUtensorMap map;
  const cuuint64_t lengths[2] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(columns) * 2};
  const cuuint32_t box[2] = {64, static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t steps[2] = {1, 1};
  const CUresult result = encode(&map, type, 2, const_cast<void*>(data), lengths, strides, box, steps,
                                 CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  STD_TORCH_CHECK(result == CUDA_SUCCESS, "cuTensorMapEncodeTiled failed with error ", static_cast<int>(result));
  return map;
}

}  // namespace groundspeed
