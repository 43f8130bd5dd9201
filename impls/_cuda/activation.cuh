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

// x/2 · erfc(-x/√2). For a >= 0, erfc(a) = t·Q(t)·e^(-a²) with t = 1/(1 + 0.37 a): the form of Abramowitz and Stegun,
// Handbook of Mathematical Functions, 7.1.26, with Q of degree 6 fitted here to the least *relative* error over
// 0 <= a <= 10. Theirs has a small absolute error and is wrong in the third digit where GELU is near zero. In float32
// this is off by at most 1.3e-6 of the result down to x = -3, 5.1e-6 down to -9.
__device__ __forceinline__ float gelu(float x) {
  const float a = fabsf(x) * 0.70710678118654752f;
  const float t = approximate_reciprocal(fmaf(0.37f, a, 1.0f));
  float q = fmaf(-0.14161167f, t, 0.43224996f);
  q = fmaf(q, t, -0.18147092f);
  q = fmaf(q, t, 0.31371552f);
  q = fmaf(q, t, 0.15413064f);
  q = fmaf(q, t, 0.21458343f);
  q = fmaf(q, t, 0.20840392f);
  const float tail = q * t * approximate_exp2(-kLog2E * a * a);  // erfc(a)
  return 0.5f * x * (x < 0.0f ? tail : 2.0f - tail);
}

}  // namespace groundspeed
