"""One loop fusion by XLA, of jax.nn.relu under jax.jit.

Memory-bound: N elements read, N written. Prediction: level with eager on the device for large N, behind it by the call,
which passes every array between torch and XLA.

Reached on nvidia-h200 at 55bea610: 248 µs for float32 N=134217728, 4.33 TB/s, 102 % of the memory ceiling, 1.01 times
as fast as torch_eager.
"""

import jax

from .._jax.exchange import compiled


def prepare(x):
    return compiled(jax.nn.relu, x)
