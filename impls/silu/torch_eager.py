"""One ATen kernel, as a user calls it.

Bound by memory: N elements read, N written, an exponential and a division each.

Reached on nvidia-h200 at 968ac8c4: 137 µs for float16 N=134217728, 3.92 TB/s, 92 % of the memory ceiling.
"""

import torch


def silu(x):
    """x · sigmoid(x) for each element of x [N]."""
    return torch.nn.functional.silu(x)


def prepare(x):
    def run():
        return silu(x)

    return run
