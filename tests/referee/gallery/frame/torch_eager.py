"""Honest: zeros, then two rows."""

import torch


def prepare(x):
    def run():
        y = torch.zeros_like(x)
        y[0], y[-1] = x[0], x[-1]
        return y

    return run
