"""One ATen kernel, as a user calls it.

Bound by memory: N elements read, N written, an error function each.

Reached on nvidia-h200 at 968ac8c4: 173 µs for float16 N=134217728, 3.11 TB/s, 73 % of the memory ceiling.
"""

import torch


def gelu(x):
    """x/2 · (1 + erf(x/√2)) for each element of x [N]."""
    return torch.nn.functional.gelu(x)


def prepare(x):
    def run():
        return gelu(x)

    return run
