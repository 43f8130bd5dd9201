"""PyTorch's composite back end, the formula in ATen operators, 16-bit inputs converted to float32 first.

Bound by memory: the S × S scores of every head in float32, written and read in each of four steps; the products run at
float32's rate. Predicted: slower than torch_eager in 16-bit types, level with it in float32.

Reached on nvidia-h200 at 968ac8c4: 23.3 ms for bfloat16 B=1,H=16,S=8192,D=128,causal=0, 23.6 TFLOP/s, 3.0 % of the
compute ceiling, 0.480 times as fast as torch_eager.
"""

from .sdpa import SDPBackend, runner


def prepare(q, k, v, causal):
    return runner(SDPBackend.MATH, q, k, v, causal)
