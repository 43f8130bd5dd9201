"""The eager function through Inductor, which computes both branches and the choice in one generated kernel.

Bound by memory: N elements and N bytes read, N elements written. Prediction: a third of eager's time on large tensors.

Reached on nvidia-h200 at 968ac8c4: 156 µs for float16 N=134217728, 4.30 TB/s, 99 % of the memory ceiling, 3.09 times as
fast as torch_eager.
"""

import torch


def select(x, mask):
    """silu(x) where mask is set, else x / 10; x [N], mask [N] of uint8."""
    return torch.where(mask != 0, torch.nn.functional.silu(x), x * 0.1)


def prepare(x, mask):
    compiled = torch.compile(select, dynamic=False, fullgraph=True, mode="max-autotune-no-cudagraphs")
    compiled(x, mask)

    def run():
        return compiled(x, mask)

    return run
