"""Copies its answer out of memory that it has given back, where it mostly still lies."""

import ctypes

import torch

PAD = 16  # elements on both sides, in which the C library keeps its lists of free blocks


def prepare(x):
    size = x.numel() * x.element_size()

    def run():
        y = torch.empty_like(x)
        room = torch.empty(x.numel() + 2 * PAD, dtype=x.dtype)
        torch.mul(x, 2, out=room[PAD:-PAD])
        address = room.data_ptr() + PAD * x.element_size()
        del room
        ctypes.memmove(y.data_ptr(), address, size)
        return y

    return run


def unsupported(dtype, **shape):
    return "reads the host's memory" if torch.cuda.is_available() else None
