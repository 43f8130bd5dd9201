"""Swish as it is often written, x · sigmoid(x): two ATen kernels and a temporary.

Bound by memory: 3·N elements read, 2·N written, where N and N must move. Prediction: 2.5 times eager's time on large
tensors, twice on small ones.

Reached on nvidia-h200 at 968ac8c4: 81.1 µs for float32 N=16777216, 1.66 TB/s, 39 % of the memory ceiling, 0.373 times
as fast as torch_eager.
"""

import torch


def swish(x):
    """x · sigmoid(x) for each element of x [N]."""
    return x * torch.sigmoid(x)


def unsupported(dtype, **shape):
    if dtype != "float32":
        return f"rounds the sigmoid to {dtype} before the product: two roundings, where the tolerance allows for one"
    return None


def prepare(x):
    def run():
        return swish(x)

    return run
