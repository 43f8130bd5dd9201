"""One ATen kernel, as a user calls it.

Bound by memory: N elements read, N written, one operation each.

Reached on nvidia-h200 at 968ac8c4: 251 µs for float32 N=134217728, 4.29 TB/s, 100 % of the memory ceiling.
"""

import torch


def relu(x):
    """max(x, 0) for each element of x [N]."""
    return torch.relu(x)


def prepare(x):
    def run():
        return relu(x)

    return run
