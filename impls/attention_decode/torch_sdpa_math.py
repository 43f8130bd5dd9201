"""PyTorch's composite back end, the masked formula in ATen operators, 16-bit inputs converted to float32 first.

Memory-bound: B·S positions of both caches are read whatever the lengths, and in 16-bit types written and read again in
float32. Predicted: level with eager in float32, a few times slower in 16-bit types.

Reached on nvidia-h200 at 968ac8c4: 3.28 ms for float16 B=64,H=64,G=8,S=4096,D=128,fill=ragged, 167 GB/s, 3.6 % of the
memory ceiling, 0.141 times as fast as torch_eager.
"""

from .sdpa import SDPBackend, runner


def prepare(q, k, v, lengths):
    return runner(SDPBackend.MATH, q, k, v, lengths)
