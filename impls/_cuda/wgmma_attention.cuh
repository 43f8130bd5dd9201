// Hopper's warpgroup products as attention needs them: queries × keys, both stored along the head, and weights ×
// values, the weights in registers. PTX ISA: "wgmma.mma_async", "setmaxnreg"; sm_90a only.
//
// Accumulators lie as wgmma.cuh says. A left factor in registers, 64 × 16, lies as that of mma.m16n8k16 in each warp's
// 16 rows (mma.cuh): accumulators of one product, rounded in pairs, are the next one's left factor.
#pragma once

#include "wgmma.cuh"

namespace groundspeed {

// PTX wants every register named: accumulators by number in the text, and as operands.
#define GROUNDSPEED_NAMES_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define GROUNDSPEED_NAMES_64 \
  GROUNDSPEED_NAMES_32 ", " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GROUNDSPEED_SUMS_4(c, i) "+f"(c[i]), "+f"(c[(i) + 1]), "+f"(c[(i) + 2]), "+f"(c[(i) + 3])
#define GROUNDSPEED_SUMS_16(c, i)                                                         \
  GROUNDSPEED_SUMS_4(c, i), GROUNDSPEED_SUMS_4(c, (i) + 4), GROUNDSPEED_SUMS_4(c, (i) + 8), \
      GROUNDSPEED_SUMS_4(c, (i) + 12)
#define GROUNDSPEED_SUMS_32(c) GROUNDSPEED_SUMS_16(c, 0), GROUNDSPEED_SUMS_16(c, 16)
#define GROUNDSPEED_SUMS_64(c) GROUNDSPEED_SUMS_32(c), GROUNDSPEED_SUMS_16(c, 32), GROUNDSPEED_SUMS_16(c, 48)

// c = a · bᵀ or, where accumulate is not 0, c += a · bᵀ: 64 queries, 128 keys, both in rows of 64 elements of the head.
template <typename T>
__device__ __forceinline__ void multiply_scores(float (&c)[64], uint64_t a, uint64_t b, int accumulate);

// c += a · b: 64 queries and 16 keys from registers, b 16 rows of kSize elements.
template <typename T, int kSize>
__device__ __forceinline__ void multiply_values(float (&c)[kSize / 2], const uint32_t (&a)[4], uint64_t b);

#define GROUNDSPEED_SCORES(T, TYPE)                                                                                 \
  template <>                                                                                                       \
  __device__ __forceinline__ void multiply_scores<T>(float(&c)[64], uint64_t a, uint64_t b, int accumulate) {       \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"                                                       \
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32." TYPE "." TYPE " {" GROUNDSPEED_NAMES_64             \
                 "}, %64, %65, p, 1, 1, 0, 0;\n}\n"                                                                 \
                 : GROUNDSPEED_SUMS_64(c)                                                                           \
                 : "l"(a), "l"(b), "r"(accumulate));                                                                \
  }

#define GROUNDSPEED_VALUES(T, TYPE, SIZE, NAMES, SUMS, FACTOR)                                                       \
  template <>                                                                                                       \
  __device__ __forceinline__ void multiply_values<T, SIZE>(float(&c)[SIZE / 2], const uint32_t(&a)[4], uint64_t b) { \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #SIZE "k16.f32." TYPE "." TYPE " {" NAMES "}, {" FACTOR        \
                 ", 1, 1, 1, 1;\n"                                                                                  \
                 : SUMS(c)                                                                                          \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                             \
  }

GROUNDSPEED_SCORES(__half, "f16")
GROUNDSPEED_SCORES(__nv_bfloat16, "bf16")
#define GROUNDSPEED_FACTOR_64 "%32, %33, %34, %35}, %36"
#define GROUNDSPEED_FACTOR_128 "%64, %65, %66, %67}, %68"
GROUNDSPEED_VALUES(__half, "f16", 64, GROUNDSPEED_NAMES_32, GROUNDSPEED_SUMS_32, GROUNDSPEED_FACTOR_64)
GROUNDSPEED_VALUES(__nv_bfloat16, "bf16", 64, GROUNDSPEED_NAMES_32, GROUNDSPEED_SUMS_32, GROUNDSPEED_FACTOR_64)
GROUNDSPEED_VALUES(__half, "f16", 128, GROUNDSPEED_NAMES_64, GROUNDSPEED_SUMS_64, GROUNDSPEED_FACTOR_128)
GROUNDSPEED_VALUES(__nv_bfloat16, "bf16", 128, GROUNDSPEED_NAMES_64, GROUNDSPEED_SUMS_64, GROUNDSPEED_FACTOR_128)

// Registers a thread that a warpgroup takes from the pool, or gives back to it. Every warp of it must call.
template <int kCount>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

template <int kCount>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}

}  // namespace groundspeed
