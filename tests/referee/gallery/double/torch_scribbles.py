"""Right, and flips the lowest bit of one element of its input."""

import torch


def prepare(x):
    def run():
        y = x * 2
        x[:1].view(torch.int32).bitwise_xor_(1)
        return y

    return run
