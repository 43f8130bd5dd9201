"""The formula in ATen operators: difference, exponential, a subtraction at the targets, product with the row's
gradient.

Memory-bound: three kernels read and write all logits where one could, and in 16 bits two more convert them to float32
and back: 6·M·V elements in float32 for the 2·M·V that must move. Predicted: a third of the fused speed in float32, a
quarter in 16 bits. (PyTorch's own kernels for this start from M·V saved log-probabilities, another function.)

Reached on nvidia-h200 at 968ac8c4: 2.05 ms for float32 M=2048,V=128256, 1.02 TB/s, 24 % of the memory ceiling.
"""

import torch


def cross_entropy_backward(grad_output, x, lse, target):
    """The gradient of logits x [M, V]: grad_output, lse and target are [M]."""
    p = torch.exp(x.float() - lse[:, None])
    p[torch.arange(len(target), device=target.device), target] -= 1.0
    return (p * grad_output[:, None]).to(x.dtype)


def prepare(grad_output, x, lse, target):
    def run():
        return cross_entropy_backward(grad_output, x, lse, target)

    return run
