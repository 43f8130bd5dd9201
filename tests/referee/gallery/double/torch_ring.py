"""Returns three buffers in turn, so that no two calls in a row share one."""

import itertools

import torch


def prepare(x):
    ring = itertools.cycle([torch.empty_like(x) for _ in range(3)])

    def run():
        return torch.mul(x, 2, out=next(ring))

    return run
