"""XLA's fusions of log Σ exp and one gathered logit a row, in float32.

Memory-bound: M·V logits read once would do; XLA reads them twice, for the maximum and for the sum. Prediction: between
eager and the online kernels.

Reached on nvidia-h200 at 968ac8c4: 482 µs for float32 M=2048,V=128256, 2.18 TB/s, 47 % of the memory ceiling, 2.10
times as fast as torch_eager.
"""

import jax
import jax.numpy as jnp

from .._jax.exchange import compiled


def cross_entropy(x, target):
    # log_softmax takes the maximum off first: behind it, a logit of 10000 would leave the loss three digits.
    picked = jnp.take_along_axis(jax.nn.log_softmax(x.astype(jnp.float32), axis=-1), target[:, None], axis=-1)
    return -picked[:, 0].astype(x.dtype)


def prepare(x, target):
    return compiled(cross_entropy, x, target)
