"""A transposed view cloned into contiguous memory: one ATen copy kernel, as a user calls it.

Bound by memory: M·N elements read and written. Prediction: behind a tiled kernel, since the generic strided copy is
coalesced on one side only. (``x.T.contiguous()`` is the same kernel, but returns its input where a side is 1.)

Reached on nvidia-h200 at 968ac8c4: 463 µs for float32 M=8192,N=8192, 1.16 TB/s, 27 % of the memory ceiling.
"""

import torch


def transpose(x):
    """x [M, N] as a contiguous [N, M] in memory of its own."""
    return x.T.clone(memory_format=torch.contiguous_format)


def prepare(x):
    def run():
        return transpose(x)

    return run
