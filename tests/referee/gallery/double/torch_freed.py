"""Gives its output's memory back to the allocator before it returns it."""

import torch


class Raw:
    def __init__(self, pointer, shape):
        self.__cuda_array_interface__ = {
            "shape": tuple(shape),
            "typestr": "<f4",
            "data": (pointer, False),
            "version": 3,
            "stream": None,
        }


def prepare(x):
    def run():
        pointer = torch.cuda.caching_allocator_alloc(x.numel() * 4, x.device)
        y = torch.as_tensor(Raw(pointer, x.shape), device=x.device)
        torch.mul(x, 2, out=y)
        torch.cuda.caching_allocator_delete(pointer)
        return y

    return run


def unsupported(dtype, **shape):
    return None if torch.cuda.is_available() and dtype == "float32" else "needs a GPU and float32"
