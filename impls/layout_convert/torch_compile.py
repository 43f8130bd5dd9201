"""The eager function through Inductor: a generated kernel that tiles both of the dimensions that change places.

Bound by memory: each element read and written once. Prediction: ahead of eager.

Reached on nvidia-h200 at 968ac8c4: 122 µs for float32 N=64,C=64,H=128,W=128,to=nhwc, 4.39 TB/s, 103 % of the memory
ceiling, 2.33 times as fast as torch_eager.
"""

import torch

from .torch_eager import convert


def prepare(x, order):
    dimensions = tuple(order.tolist())
    compiled = torch.compile(convert, dynamic=False, fullgraph=True, mode="max-autotune-no-cudagraphs")
    compiled(x, dimensions)

    def run():
        return compiled(x, dimensions)

    return run
