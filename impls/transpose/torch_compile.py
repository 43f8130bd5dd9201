"""The eager function through Inductor: a generated kernel that tiles both dimensions.

Bound by memory: M·N elements read and written. Prediction: ahead of eager, as a tile is coalesced on both sides.

Reached on nvidia-h200 at 968ac8c4: 126 µs for float32 M=8192,N=8192, 4.26 TB/s, 100 % of the memory ceiling, 3.67 times
as fast as torch_eager.
"""

import torch

from .torch_eager import transpose


def prepare(x):
    compiled = torch.compile(transpose, dynamic=False, fullgraph=True, mode="max-autotune-no-cudagraphs")
    compiled(x)

    def run():
        return compiled(x)

    return run
