"""Activation functions in float32 for CuPy's run-time compiled kernels."""

# x/2 · erfc(-x/√2): the approximation and its errors are told in impls/_cuda/activation.cuh. The hardware's exponential
# and reciprocal are asked for by name, since CUDA's own functions guard against results below 2^-126.
GELU = r"""
__device__ inline float gelu(float x) {
  float t, power;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(t) : "f"(fmaf(0.26162950903902258f, fabsf(x), 1.0f)));
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(-0.72134752044448170f * x * x));
  float q = fmaf(-0.14161167f, t, 0.43224996f);
  q = fmaf(q, t, -0.18147092f);
  q = fmaf(q, t, 0.31371552f);
  q = fmaf(q, t, 0.15413064f);
  q = fmaf(q, t, 0.21458343f);
  q = fmaf(q, t, 0.20840392f);
  const float tail = q * t * power;  // erfc(|x|/√2)
  return 0.5f * x * (x < 0.0f ? tail : 2.0f - tail);
}
"""
