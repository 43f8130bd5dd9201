"""XLA's fusions of the formula, the mean square in float32.

Memory-bound: 2·M·N elements would do; XLA cuts at the reduction unless it holds a whole row. Prediction: level with the
fused kernels where it holds one.

Reached on nvidia-h200 at 968ac8c4: 188 µs for float32 M=2048,N=32768, 2.85 TB/s, 67 % of the memory ceiling, 1.04 times
as fast as torch_eager.
"""

import jax
import jax.numpy as jnp

from .._jax.exchange import compiled

EPSILON = 1e-6


def rms_norm(x, weight):
    wide = x.astype(jnp.float32)
    scale = jax.lax.rsqrt(jnp.square(wide).mean(axis=-1, keepdims=True) + EPSILON)
    return (wide * scale * weight.astype(jnp.float32)).astype(x.dtype)


def prepare(x, weight):
    return compiled(rms_norm, x, weight)
