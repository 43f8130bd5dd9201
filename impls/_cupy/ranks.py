"""NCCL through CuPy: a communicator of its own beside torch's, on CuPy's current stream."""

import functools

import cupy
from cupy.cuda import nccl
from torch import distributed

from .dtypes import unsupported as _unsupported

_TYPES = {"float32": "NCCL_FLOAT32", "float16": "NCCL_FLOAT16"}


def unsupported(dtype, **shape):
    """Why CuPy's NCCL cannot take a dtype, or None."""
    if not hasattr(nccl, "NcclCommunicator"):
        return "this CuPy finds no NCCL"
    return _unsupported(dtype, **shape)


def kind_of(array):
    """NCCL's number for an array's dtype."""
    return getattr(nccl, _TYPES[array.dtype.name])


@functools.cache
def communicator():
    """One for the default group of torch.distributed, whose ranks must all ask for it at once the first time."""
    name = [nccl.get_unique_id() if distributed.get_rank() == 0 else None]
    distributed.broadcast_object_list(name, src=0)
    return nccl.NcclCommunicator(distributed.get_world_size(), name[0], distributed.get_rank())


def stream():
    return cupy.cuda.get_current_stream().ptr
