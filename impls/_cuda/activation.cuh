// Activation functions in float32 by the hardware's approximate exponential and reciprocal.
#pragma once

namespace groundspeed {

// 2^x, 2 ulp; denormal results are zero (PTX ISA, "ex2").
__device__ __forceinline__ float approximate_exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// 1/x, 1 ulp; infinity gives 0 (PTX ISA, "rcp").
__device__ __forceinline__ float approximate_reciprocal(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

constexpr float kLog2E = 1.44269504088896340736f;

// 1 / (1 + e^-x): relative error about (1 + |x|)·2^-23.
__device__ __forceinline__ float sigmoid(float x) {
  return approximate_reciprocal(1.0f + approximate_exp2(-kLog2E * x));
}

// x/2 · (1 + erf(x/√2)), with 1 - erf by Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: absolute
// error of erf at most 1.5e-7.
__device__ __forceinline__ float gelu(float x) {
  const float a = fabsf(x) * 0.70710678118654752f;
  const float t = approximate_reciprocal(fmaf(0.3275911f, a, 1.0f));
  float polynomial = fmaf(1.061405429f, t, -1.453152027f);
  polynomial = fmaf(polynomial, t, 1.421413741f);
  polynomial = fmaf(polynomial, t, -0.284496736f);
  polynomial = fmaf(polynomial, t, 0.254829592f);
  const float tail = polynomial * t * approximate_exp2(-kLog2E * a * a);  // 1 - erf(a)
  return 0.5f * x * (x < 0.0f ? tail : 2.0f - tail);
}

}  // namespace groundspeed
