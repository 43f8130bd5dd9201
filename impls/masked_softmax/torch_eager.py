"""Two ATen kernels: the masked logits go to memory and come back for the softmax.

Memory-bound: 2·M·N elements read, 2·M·N written, where M·N and M·N must move, and the mask. Prediction: twice the fused
time.

Reached on nvidia-h200 at 968ac8c4: 563 µs for float32 M=16384,N=4096, 1.07 TB/s, 25 % of the memory ceiling.
"""

import torch


def masked_softmax(x, mask):
    """Softmax of each row of x [M, N] where mask [M, N] is 0; 0 elsewhere."""
    return torch.softmax(x.masked_fill(mask.view(torch.bool), float("-inf")), dim=-1)


def prepare(x, mask):
    def run():
        return masked_softmax(x, mask)

    return run
