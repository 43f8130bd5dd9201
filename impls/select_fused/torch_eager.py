"""Both branches for all elements, then a choice: three ATen kernels and two temporaries.

Bound by memory: 4·N elements read, 3·N written, and the mask, where N and N must move. Prediction: three times the
fused time on large tensors as on small ones.

Reached on nvidia-h200 at 968ac8c4: 482 µs for float16 N=134217728, 1.39 TB/s, 32 % of the memory ceiling.
"""

import torch


def select(x, mask):
    """silu(x) where mask is set, else x / 10; x [N], mask [N] of uint8."""
    return torch.where(mask.view(torch.bool), torch.nn.functional.silu(x), x * 0.1)


def prepare(x, mask):
    def run():
        return select(x, mask)

    return run
