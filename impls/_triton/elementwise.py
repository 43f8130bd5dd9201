"""The launch that elementwise Triton kernels share: a covering grid, two 16-byte vectors a thread.

A kernel has the parameters ``(*input pointers, y_ptr, N, BLOCK)`` and handles elements ``program · BLOCK`` onwards.
Triton turns a contiguous, aligned block into 16-byte accesses by itself.
"""

import torch
import triton

WARPS = 4
BLOCK_BYTES = WARPS * 32 * 2 * 16  # two vectors in flight a thread hide more latency than one


def launch(kernel, *inputs, **constants):
    """Apply ``kernel`` to tensors of one shape and dtype: a fresh contiguous tensor. Copies strided inputs first."""
    sources = [tensor.contiguous() for tensor in inputs]
    y = torch.empty_like(sources[0])
    size = y.numel()
    if size:
        block = BLOCK_BYTES // y.element_size()
        kernel[(triton.cdiv(size, block),)](*sources, y, size, BLOCK=block, num_warps=WARPS, **constants)
    return y
