"""Returns the same buffer each call: saves the allocation, and a caller's earlier result."""

import torch


def prepare(x):
    buffer = torch.empty_like(x)

    def run():
        return torch.mul(x, 2, out=buffer)

    return run
