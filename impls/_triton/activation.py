"""Activation functions in float32 inside Triton kernels."""

import triton
import triton.language as tl


@triton.jit
def gelu(x):
    """x/2 · erfc(-x/√2): the approximation and its errors are told in impls/_cuda/activation.cuh."""
    a = tl.abs(x) * 0.70710678118654752
    t = 1.0 / (1.0 + 0.37 * a)
    q = ((-0.14161167 * t + 0.43224996) * t - 0.18147092) * t + 0.31371552
    q = ((q * t + 0.15413064) * t + 0.21458343) * t + 0.20840392
    tail = q * t * tl.exp(-a * a)  # erfc(a)
    return 0.5 * x * tl.where(x < 0, tail, 2.0 - tail)


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)
