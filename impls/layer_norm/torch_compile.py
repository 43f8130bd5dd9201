"""The eager function through Inductor: a generated reduction, specialised to the shape.

Memory-bound: 2·M·N elements where Inductor holds a row on chip, 3·M·N where it splits the row into a loop and reads it
again, partly from L2. Prediction: level with eager.

Reached on nvidia-h200 at 968ac8c4: 151 µs for float32 M=2048,N=32768, 3.56 TB/s, 83 % of the memory ceiling, 1.76 times
as fast as torch_eager.
"""

import torch

from .torch_eager import layer_norm


def prepare(x, weight, bias):
    compiled = torch.compile(layer_norm, dynamic=False, fullgraph=True, mode="max-autotune-no-cudagraphs")
    compiled(x, weight, bias)

    def run():
        return compiled(x, weight, bias)

    return run
