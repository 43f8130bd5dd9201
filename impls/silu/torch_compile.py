"""x · sigmoid(x) through Inductor, which fuses the two operations of torch_product into one generated kernel.

Bound by memory: N elements read, N written. Prediction: level with eager's one kernel on large tensors.

Reached on nvidia-h200 at 968ac8c4: 123 µs for float16 N=134217728, 4.35 TB/s, 102 % of the memory ceiling, 1.11 times
as fast as torch_eager.
"""

import torch

from .torch_product import swish


def prepare(x):
    compiled = torch.compile(swish, dynamic=False, fullgraph=True, mode="max-autotune-no-cudagraphs")
    compiled(x)

    def run():
        return compiled(x)

    return run
