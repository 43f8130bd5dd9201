"""A permuted view cloned into contiguous memory: one ATen copy kernel, as a user calls it.

Bound by memory: each element read and written once. Prediction: behind a tiled kernel, since the generic strided copy
is coalesced on one side only.

Reached on nvidia-h200 at 968ac8c4: 286 µs for float32 N=64,C=64,H=128,W=128,to=nhwc, 1.88 TB/s, 44 % of the memory
ceiling.
"""

import torch


def convert(x, order):
    """x of four dimensions in another order of them, in contiguous memory of its own."""
    return x.permute(order).clone(memory_format=torch.contiguous_format)


def prepare(x, order):
    dimensions = tuple(order.tolist())

    def run():
        return convert(x, dimensions)

    return run
