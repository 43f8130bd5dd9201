"""One loop fusion by XLA, of jax.nn.relu under jax.jit.

Memory-bound: N elements read, N written. Prediction: level with eager on the device for large N, behind it by the call,
which passes every array between torch and XLA.

Reached on nvidia-h200 at 968ac8c4: 246 µs for float32 N=134217728, 4.36 TB/s, 102 % of the memory ceiling, 1.02 times
as fast as torch_eager.
"""

import jax

from .._jax.exchange import compiled


def prepare(x):
    return compiled(jax.nn.relu, x)
