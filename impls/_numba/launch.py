"""Launching a kernel that Numba compiled: on torch's current stream, over torch's memory.

Numba reads a tensor's address through ``__cuda_array_interface__``, again in every call: part of what a call costs the
host, and no part of the device's time.
"""

import functools

import torch
from numba import cuda

BLOCK = 256


def unsupported(dtype, **shape):
    return "numba-cuda takes no arrays of bfloat16" if dtype == "bfloat16" else None


def current_stream():
    """torch's, as Numba has it."""
    return _stream(torch.cuda.current_stream().cuda_stream)


@functools.cache
def _stream(pointer):
    return cuda.external_stream(pointer) if pointer else cuda.default_stream()


def elementwise(kernel, *vectors):
    """A fresh vector of ``kernel(inputs, output)``, a thread an element."""
    sources = [vector.contiguous() for vector in vectors]
    y = torch.empty_like(sources[0])
    if y.numel():
        kernel[-(-y.numel() // BLOCK), BLOCK, current_stream()](*sources, y)
    return y


def rows(kernel, x, y):
    """``y`` of ``kernel(x, y)``, a block a row of x [M, N]."""
    if y.numel():
        kernel[x.shape[0], BLOCK, current_stream()](x.contiguous(), y)
    return y
