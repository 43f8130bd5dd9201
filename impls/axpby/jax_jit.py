"""Vertical fusion by XLA: sum and product in one loop under jax.jit.

Memory-bound: 3·N elements read, N written, as few as can be. In 16 bits XLA may keep the sum in float32 or round it.
Prediction: level with torch_compile on the device.

Reached on nvidia-h200 at 968ac8c4: 239 µs for float16 N=134217728, 4.49 TB/s, 101 % of the memory ceiling, 1.53 times
as fast as torch_eager.
"""

from .._jax.exchange import compiled


def axpby(a, b, c):
    return (a + b) * c


def prepare(a, b, c):
    return compiled(axpby, a, b, c)
