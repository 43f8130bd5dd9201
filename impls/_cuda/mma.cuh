// Tensor-core instructions of sm_80 and later for 16-bit types: asynchronous copies, matrix loads, multiply-accumulate.
//
// Fragments (PTX ISA, "Matrix Fragments for mma.m16n8k16"), with g = lane / 4 and t = lane % 4:
//   A, 16 × 16: a[0] holds (row g, k 2t..2t+1), a[1] row g + 8, a[2] (row g, k 2t+8..2t+9), a[3] row g + 8 of those;
//   B, 16 × 8:  b[0] holds (k 2t..2t+1, column g), b[1] k 2t+8..2t+9;
//   C, 16 × 8:  c[0], c[1] hold (row g, column 2t..2t+1), c[2], c[3] row g + 8.
// ldmatrix.x4 reads four 8 × 8 matrices, the rows of matrix i from the addresses of lanes 8i..8i+7; lane l receives
// elements 2(l % 4), 2(l % 4) + 1 of row l / 4, and with .trans of column l / 4.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cstdint>

namespace groundspeed {

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Copies 16 bytes from global to shared memory past the registers; where `inside` is false writes 16 zero bytes and
// reads nothing. Both addresses must be multiples of 16.
__device__ __forceinline__ void copy_async16(uint32_t destination, const void* source, bool inside) {
  const int bytes = inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(destination), "l"(source), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most kPending of this thread's latest groups of copies are still under way.
template <int kPending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

__device__ __forceinline__ void load_matrices(uint32_t (&out)[4], uint32_t row_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(row_address)
               : "memory");
}

__device__ __forceinline__ void load_matrices_transposed(uint32_t (&out)[4], uint32_t row_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(row_address)
               : "memory");
}

// c += a · b for a 16 × 16 by 16 × 8 product, accumulated in float32.
template <typename T>
__device__ __forceinline__ void multiply_accumulate(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);

template <>
__device__ __forceinline__ void multiply_accumulate<__half>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                                            uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <>
__device__ __forceinline__ void multiply_accumulate<__nv_bfloat16>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                                                   uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace groundspeed
