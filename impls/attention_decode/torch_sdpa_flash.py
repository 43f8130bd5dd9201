"""PyTorch's flash kernel for CPUs, which takes a mask as the one for CUDA does not.

Memory-bound: B·S positions of both caches are read whatever the lengths. Predicted: ahead of eager, whose scores go to
memory.
"""

import torch

from .sdpa import SDPBackend, fused_refusal, runner


def unsupported(dtype, B, **shape):
    if torch.cuda.is_available():
        return "the flash kernel for CUDA takes no mask, and lengths are data"
    return fused_refusal("flash attention", B, without_gpu=True)


def prepare(q, k, v, lengths):
    return runner(SDPBackend.FLASH_ATTENTION, q, k, v, lengths)
