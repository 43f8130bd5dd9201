"""PyTorch's own rms_norm: one library call, the baseline.

Memory-bound: 2·M·N elements where it is one kernel. Prediction: near the copy bandwidth for long rows.

Reached on nvidia-h200 at 968ac8c4: 196 µs for float32 M=2048,N=32768, 2.75 TB/s, 64 % of the memory ceiling.
"""

import torch

EPSILON = 1e-6


def rms_norm(x, weight):
    """Normalise the last dimension of x [M, N]; weight is [N]."""
    return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, EPSILON)


def prepare(x, weight):
    def run():
        return rms_norm(x, weight)

    return run
