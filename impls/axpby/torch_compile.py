"""The eager function through Inductor, which fuses both operations into one generated kernel.

Bound by memory: 3·N elements read, N written. Prediction: two thirds of eager's time on large tensors.
"""

import torch

from .torch_eager import axpby


def prepare(a, b, c):
    compiled = torch.compile(axpby, dynamic=False, fullgraph=True, mode="max-autotune-no-cudagraphs")
    compiled(a, b, c)

    def run():
        return compiled(a, b, c)

    return run
