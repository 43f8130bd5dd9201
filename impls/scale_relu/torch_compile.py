"""The eager function through Inductor, which fuses both operations into one generated kernel.

Bound by memory: N elements read, N written. Prediction: half of eager's time on large tensors.

Reached on nvidia-h200 at 968ac8c4: 123 µs for float16 N=134217728, 4.36 TB/s, 102 % of the memory ceiling, 2.11 times
as fast as torch_eager.
"""

import torch

from .torch_eager import scale_relu


def prepare(x, scale):
    factor = float(scale)
    compiled = torch.compile(scale_relu, dynamic=False, fullgraph=True, mode="max-autotune-no-cudagraphs")
    compiled(x, factor)

    def run():
        return compiled(x, factor)

    return run
