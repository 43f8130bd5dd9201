"""torch.jit.script, whose fuser joins the pointwise steps and leaves the product a matmul.

Bound by memory: two passes over the batch, 12 elements a pixel, where eager makes three. The profiling executor
fuses only after it has seen two calls, which ``prepare`` makes.

Reached on nvidia-h200 at 968ac8c4: 16.0 ms for float32 N=1024,H=512,W=512, 402 GB/s, 9.4 % of the memory ceiling, 1.11
times as fast as torch_eager.
"""

import warnings

import torch

from .torch_eager import normalize_color

CALLS_UNTIL_FUSED = 3


def unsupported(dtype, **shape):
    if not hasattr(torch.jit, "script"):
        return f"torch {torch.__version__} has no torch.jit.script"
    return None


def script(function):
    """The scripted function; torch's deprecation of TorchScript is known here and says nothing about this call."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        return torch.jit.script(function)


def prepare(x, mean, std, M):
    scripted = script(normalize_color)
    for _ in range(CALLS_UNTIL_FUSED):
        scripted(x, mean, std, M)

    def run():
        return scripted(x, mean, std, M)

    return run
