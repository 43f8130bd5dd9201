"""PyTorch's composite back end, the formula in ATen operators, 16-bit inputs converted to float32 first.

Bound by memory: the S × S scores of every head in float32, written and read in each of four steps; the products run at
float32's rate. Predicted: slower than torch_eager in 16-bit types, level with it in float32.
"""

from .sdpa import SDPBackend, runner


def prepare(q, k, v, causal):
    return runner(SDPBackend.MATH, q, k, v, causal)
