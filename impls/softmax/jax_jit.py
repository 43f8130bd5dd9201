"""XLA's fusion of jax.nn.softmax over rows, in float32 whatever the storage type is.

Memory-bound: 2·M·N elements where XLA finds its softmax rewrite (one kernel, the row in registers); 4·M·N and more
where it cuts the formula at its two reductions. Prediction: the former for rows that fit a block.

Reached on nvidia-h200 at 968ac8c4: 140 µs for float32 M=8192,N=8192, 3.84 TB/s, 90 % of the memory ceiling, 1.98 times
as fast as torch_eager.
"""

import jax
import jax.numpy as jnp

from .._jax.exchange import compiled


def softmax(x):
    return jax.nn.softmax(x.astype(jnp.float32), axis=-1).astype(x.dtype)


def prepare(x):
    return compiled(softmax, x)
