"""PyTorch's own kernel: one library call, the baseline.

Memory-bound: 2·M·N elements. It sums in float32 whatever the dtype. Prediction: near the copy bandwidth for long rows.

Reached on nvidia-h200 at 968ac8c4: 265 µs for float32 M=2048,N=32768, 2.03 TB/s, 47 % of the memory ceiling.
"""

import torch

EPSILON = 1e-5


def layer_norm(x, weight, bias):
    """Normalise the last dimension of x [M, N]; weight and bias are [N]."""
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, EPSILON)


def prepare(x, weight, bias):
    def run():
        return layer_norm(x, weight, bias)

    return run
