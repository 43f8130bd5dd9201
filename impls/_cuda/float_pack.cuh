// Scalars as float, and 16-byte packs of them: arithmetic is in float32 whatever the storage type is.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cstdint>

namespace groundspeed {

__device__ __forceinline__ float to_float(float value) { return value; }
__device__ __forceinline__ float to_float(__half value) { return __half2float(value); }
__device__ __forceinline__ float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }

template <typename T>
__device__ __forceinline__ T from_float(float value);
template <>
__device__ __forceinline__ float from_float<float>(float value) { return value; }
template <>
__device__ __forceinline__ __half from_float<__half>(float value) { return __float2half_rn(value); }
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float value) { return __float2bfloat16_rn(value); }

// One 16-byte memory instruction's worth of T.
template <typename T>
struct alignas(16) FloatPack {
  static constexpr int kLanes = 16 / sizeof(T);
  T lanes[kLanes];
};

template <typename T>
__device__ __forceinline__ FloatPack<T> load_pack(const T* address) {
  FloatPack<T> pack;
  *reinterpret_cast<uint4*>(&pack) = *reinterpret_cast<const uint4*>(address);
  return pack;
}

// Global memory only. A plain assignment was seen to be split into four 4-byte stores; this is one instruction.
template <typename T>
__device__ __forceinline__ void store_pack(T* address, const FloatPack<T>& pack) {
  const uint4 words = *reinterpret_cast<const uint4*>(&pack);
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(words.x), "r"(words.y), "r"(words.z),
               "r"(words.w)
               : "memory");
}

template <typename T>
__device__ __forceinline__ FloatPack<T> filled_pack(float value) {
  FloatPack<T> pack;
#pragma unroll
  for (int lane = 0; lane < FloatPack<T>::kLanes; ++lane) pack.lanes[lane] = from_float<T>(value);
  return pack;
}

inline bool is_aligned16(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }

}  // namespace groundspeed
