"""One ATen kernel, as a user calls it.

Bound by memory: N elements read, N written, an exponential and a division each.

Reached on nvidia-h200 at 968ac8c4: 138 µs for float16 N=134217728, 3.89 TB/s, 91 % of the memory ceiling.
"""

import torch


def sigmoid(x):
    """1 / (1 + exp(-x)) for each element of x [N]."""
    return torch.sigmoid(x)


def prepare(x):
    def run():
        return sigmoid(x)

    return run
