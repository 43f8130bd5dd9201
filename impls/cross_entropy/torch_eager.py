"""PyTorch's cross_entropy: a log-softmax of all logits, then a kernel that picks one of each row.

Memory-bound: M·V logits read and as many log-probabilities written, of which M are used; long rows are read two or
three times, partly from L2. Prediction: two to three times the fused time.

Reached on nvidia-h200 at 968ac8c4: 1.01 ms for float32 M=2048,V=128256, 1.04 TB/s, 22 % of the memory ceiling.
"""

import torch


def cross_entropy(x, target):
    """The loss of each row: x [M, V], target [M]."""
    return torch.nn.functional.cross_entropy(x, target, reduction="none")


def prepare(x, target):
    def run():
        return cross_entropy(x, target)

    return run
