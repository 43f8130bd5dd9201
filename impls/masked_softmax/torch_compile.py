"""The eager function through Inductor, which fuses mask and softmax into one generated kernel.

Memory-bound: M·N elements read and written, and the mask, as long as Inductor keeps a row on chip. Prediction: half of
eager's time.

Reached on nvidia-h200 at 968ac8c4: 172 µs for float32 M=16384,N=4096, 3.51 TB/s, 81 % of the memory ceiling, 3.27 times
as fast as torch_eager.
"""

import torch


def masked_softmax(x, mask):
    """Softmax of each row of x [M, N] where mask [M, N] is 0; 0 elsewhere."""
    return torch.softmax(x.masked_fill(mask != 0, float("-inf")), dim=-1)


def prepare(x, mask):
    compiled = torch.compile(masked_softmax, dynamic=False, fullgraph=True, mode="max-autotune-no-cudagraphs")
    compiled(x, mask)

    def run():
        return compiled(x, mask)

    return run
