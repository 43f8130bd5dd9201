"""A maximum that takes the number where the other is NaN."""

import torch


def prepare(x):
    return lambda: torch.fmax(x, torch.zeros((), dtype=x.dtype, device=x.device))
