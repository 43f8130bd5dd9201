"""IREE's one dispatch of the sum and product that JAX lowers.

Memory-bound: 3·N elements read, N written. PTX is for compute capability 8.0, since IREE 3.13 describes none newer.
Prediction: behind jax_jit.
"""

from .._iree.module import compiled, unsupported
from .jax_jit import axpby

__all__ = ["prepare", "unsupported"]


def prepare(a, b, c):
    return compiled(axpby, a, b, c)
