// CUDA's scalars and vectors on a CPU: halves by their bits, rounded to nearest even, and arithmetic of kernels.
#pragma once

#include <stdint.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#define __global__
#define __device__
#define __forceinline__ inline
#define __align__(bytes) alignas(bytes)
#define __launch_bounds__(...)

using std::max;
using std::min;

struct Index {
  unsigned x, y, z;
};
static Index threadIdx, blockIdx, blockDim, gridDim;

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }

struct __half {
  uint16_t bits;
};
struct alignas(4) __half2 {
  __half x, y;
};

template <typename To, typename From>
inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

inline float __half2float(__half value) {
  const unsigned sign = (value.bits & 0x8000u) << 16, size = value.bits & 0x7fffu;
  if (size >= 0x7c00u) return bits_as<float>(sign | 0x7f800000u | (size & 0x3ffu) << 13);
  const float small = static_cast<float>(size) * 0x1p-24f;
  return bits_as<float>(sign | bits_as<unsigned>(size < 0x400u ? small : bits_as<float>((size << 13) + 0x38000000u)));
}

inline __half __float2half_rn(float value) {
  const unsigned bits = bits_as<unsigned>(value), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  unsigned result;
  if (size > 0x7f800000u) result = 0x7fffu;
  else if (size >= 0x477ff000u) result = 0x7c00u;
  else if (size >= 0x38800000u) result = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
  else result = static_cast<unsigned>(rintf(bits_as<float>(size) * 0x1p24f));
  return {static_cast<uint16_t>(sign | result)};
}
inline __half2 __floats2half2_rn(float x, float y) { return {__float2half_rn(x), __float2half_rn(y)}; }

struct __nv_bfloat16 {
  uint16_t bits;
};
inline float __bfloat162float(__nv_bfloat16 value) { return bits_as<float>(static_cast<unsigned>(value.bits) << 16); }
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  const unsigned bits = bits_as<unsigned>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
  return {static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}

inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  const uint64_t both = static_cast<uint64_t>(high) << 32 | low;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) result |= static_cast<unsigned>(both >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  return result;
}

template <typename T>
T __ldcs(const T* place) { return *place; }
template <typename T>
void __stcs(T* place, T value) { *place = value; }

inline float __int_as_float(int value) { return bits_as<float>(value); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __expf(float x) { return expf(x); }
#define rsqrtf(x) (1.0f / sqrtf(x))  // later C libraries have one of their own
