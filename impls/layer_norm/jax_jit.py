"""XLA's fusions of the formula, mean and mean squared deviation in float32.

Memory-bound: 2·M·N elements would do; XLA cuts at each of the two reductions unless it holds a whole row. Prediction:
behind eager's single kernel by the second and third read, which find short rows in the L2.

Reached on nvidia-h200 at 968ac8c4: 254 µs for float32 M=2048,N=32768, 2.11 TB/s, 49 % of the memory ceiling, 1.04 times
as fast as torch_eager.
"""

import jax
import jax.numpy as jnp

from .._jax.exchange import compiled

EPSILON = 1e-5


def layer_norm(x, weight, bias):
    wide = x.astype(jnp.float32)
    deviation = wide - wide.mean(axis=-1, keepdims=True)
    scale = jax.lax.rsqrt(jnp.square(deviation).mean(axis=-1, keepdims=True) + EPSILON)
    return (deviation * scale * weight.astype(jnp.float32) + bias.astype(jnp.float32)).astype(x.dtype)


def prepare(x, weight, bias):
    return compiled(layer_norm, x, weight, bias)
