"""Writes all but the last seven elements."""

import torch


def prepare(x):
    def run():
        y = torch.empty_like(x)
        torch.mul(x[:-7], 2, out=y[:-7])
        return y

    return run
