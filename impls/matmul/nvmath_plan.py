"""cuBLASLt by nvmath-python, planned once: the heuristics' first algorithm for the shape, no search in the call.

Compute-bound: 2·M·N·K FLOPs. The default compute type keeps float32 from TF32. Prediction: level with eager, which asks
the same library.
"""

from .._nvmath.plan import planned, unsupported

__all__ = ["prepare", "unsupported"]


def prepare(a, b):
    return planned(a, b)
