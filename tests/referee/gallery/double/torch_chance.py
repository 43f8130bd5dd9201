"""Wrong now and then, as a race is."""

import torch


def prepare(x):
    luck = torch.Generator().manual_seed(0)

    def run():
        y = x * 2
        if torch.rand((), generator=luck) < 0.5:
            y[-1] += 1
        return y

    return run
