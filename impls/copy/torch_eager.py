"""torch.clone, as a user calls it: a contiguous tensor is copied by the driver, a strided one by an ATen kernel.

Bound by memory: N elements read, N written. Prediction: the copy ceiling on large tensors.

Reached on nvidia-h200 at 968ac8c4: 253 µs for float32 N=134217728, 4.25 TB/s, 99 % of the memory ceiling.
"""

import torch


def copy(x):
    """x in contiguous memory of its own."""
    return x.clone(memory_format=torch.contiguous_format)


def prepare(x):
    def run():
        return copy(x)

    return run
