"""cuDNN's convolutions in the arithmetic that the dtype names.

By default PyTorch lets cuDNN round float32 factors to TF32, 10 bits of mantissa: another operator than the one that is
asked for, and one that its tolerance refuses.
"""

import contextlib

import torch


def exact(dtype):
    """A context in which convolutions of ``dtype`` are not lowered; all other settings of cuDNN stay."""
    if dtype != torch.float32:
        return contextlib.nullcontext()
    cudnn = torch.backends.cudnn
    return cudnn.flags(
        enabled=cudnn.enabled, benchmark=cudnn.benchmark, deterministic=cudnn.deterministic, allow_tf32=False
    )
