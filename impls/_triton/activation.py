"""Activation functions in float32 inside Triton kernels."""

import triton
import triton.language as tl


@triton.jit
def gelu(x):
    """x/2 · erfc(-x/√2): the approximation and its errors are told in impls/_cuda/activation.cuh.

    The reciprocal is a squared rsqrt, and the exponential one of base 2: each is one instruction of the hardware, while
    a division and ``tl.exp`` guard against results below 2^-126, which takes three more each.
    """
    root = tl.rsqrt(0.26162950903902258 * tl.abs(x) + 1.0)  # 0.37/√2
    t = root * root
    q = ((-0.14161167 * t + 0.43224996) * t - 0.18147092) * t + 0.31371552
    q = ((q * t + 0.15413064) * t + 0.21458343) * t + 0.20840392
    tail = q * t * tl.exp2(-0.72134752044448170 * x * x)  # erfc(|x|/√2); the factor is log2(e)/2
    return 0.5 * x * tl.where(x < 0, tail, 2.0 - tail)


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)
