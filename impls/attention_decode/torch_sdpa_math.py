"""PyTorch's composite back end, the masked formula in ATen operators, 16-bit inputs converted to float32 first.

Memory-bound: B·S positions of both caches are read whatever the lengths, and in 16-bit types written and read again in
float32. Predicted: level with eager in float32, a few times slower in 16-bit types.
"""

from .sdpa import SDPBackend, runner


def prepare(q, k, v, lengths):
    return runner(SDPBackend.MATH, q, k, v, lengths)
