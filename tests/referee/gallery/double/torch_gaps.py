"""Right, with a gap between neighbours."""

import torch


def prepare(x):
    def run():
        room = torch.zeros(2 * x.numel(), dtype=x.dtype, device=x.device)
        return torch.mul(x, 2, out=room[::2])

    return run
