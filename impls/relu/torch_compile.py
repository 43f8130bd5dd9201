"""The eager function through Inductor, one generated kernel with nothing beside it to fuse.

Bound by memory: N elements read, N written. Prediction: no faster than eager on large tensors, and slower on small
ones, where the guards of a compiled call cost more host time than ATen's dispatch.
"""

import torch

from .torch_eager import relu


def prepare(x):
    compiled = torch.compile(relu, dynamic=False, fullgraph=True, mode="max-autotune-no-cudagraphs")
    compiled(x)

    def run():
        return compiled(x)

    return run
