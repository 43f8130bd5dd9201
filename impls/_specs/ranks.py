"""Inputs and costs that the collectives share: a vector a rank, and what crosses between the ranks.

Bus bandwidth is that of NVIDIA's nccl-tests (doc/PERFORMANCE.md): bytes that each rank must send, over time. Of S bytes
over n ranks these are S (n-1)/n for all-gather and reduce-scatter, where S is the whole vector, and twice that for
all-reduce, where S is each rank's vector. It can be held against the rate of the link, whatever n is.
"""

from groundspeed.operator import data


def vectors(generator, dtype, device, world, size, layout="contiguous"):
    """For each rank {"x": [size]}, drawn one after the other: ``layout`` as in vectors."""
    from .vectors import vector

    return [{"x": data(vector(generator, dtype, device, size, layout, "normal"))} for _ in range(world)]


def scattered_bytes(world, size):
    """Bytes of ``size`` that a rank must send for all-gather or reduce-scatter over so many ranks."""
    return size * (world - 1) // world
