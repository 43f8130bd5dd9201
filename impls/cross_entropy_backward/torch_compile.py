"""The formula through Inductor in one kernel, the target found by comparing columns with it.

Memory-bound: 2·M·V elements. Predicted: near the ceiling for a read and a write where rows are aligned, behind it where
they are not (V = 50257).

Reached on nvidia-h200 at 968ac8c4: 494 µs for float32 M=2048,V=128256, 4.25 TB/s, 99 % of the memory ceiling, 4.16
times as fast as torch_eager.
"""

import torch


def by_comparison(grad_output, x, lse, target):
    """The gradient of logits x [M, V]: grad_output, lse and target are [M]."""
    p = torch.exp(x.float() - lse[:, None])
    columns = torch.arange(x.shape[1], device=x.device)
    p = torch.where(columns[None, :] == target[:, None], p - 1.0, p)
    return (p * grad_output[:, None].float()).to(x.dtype)


def prepare(grad_output, x, lse, target):
    compiled = torch.compile(by_comparison, dynamic=False, fullgraph=True, mode="max-autotune-no-cudagraphs")
    compiled(grad_output, x, lse, target)

    def run():
        return compiled(grad_output, x, lse, target)

    return run
