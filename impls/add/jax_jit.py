"""One loop fusion by XLA, of a + b under jax.jit.

Memory-bound: 2·N elements read, N written. Prediction: level with eager on the device for large N, behind it by the
call, which passes every array between torch and XLA.

Reached on nvidia-h200 at 968ac8c4: 183 µs for float16 N=134217728, 4.40 TB/s, 100 % of the memory ceiling, 0.986 times
as fast as torch_eager.
"""

from .._jax.exchange import compiled


def add(a, b):
    return a + b


def prepare(a, b):
    return compiled(add, a, b)
