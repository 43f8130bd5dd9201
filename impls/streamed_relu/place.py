"""The CUDA operators' second argument: x lies in host memory, and an empty tensor says on which device y is to lie."""

import torch


def prepare(ops, x):
    place = torch.empty(0, dtype=x.dtype, device="cuda")

    def run():
        return ops.run(x, place)

    return run
