"""How a vector is cut for the ranks, the same for every back end, and how those that have none of it learn its size."""

from torch import distributed

ALIGNMENT = 128  # elements: a shard begins where vector loads can begin, if the vector itself does


def whole_size(x):
    """Elements of rank 0's vector, told to all ranks."""
    size = [x.size if isinstance(x.size, int) else x.numel()]
    distributed.broadcast_object_list(size, src=0)
    return size[0]


def shard_size(size, world):
    """Elements of a rank's part, of which the last may hold fewer, or none."""
    return -(-size // (world * ALIGNMENT)) * ALIGNMENT


def shards(size, world):
    """(first, last + 1) of each rank's part."""
    step = shard_size(size, world)
    return [(min(size, rank * step), min(size, (rank + 1) * step)) for rank in range(world)]


def pieces(size, most):
    """The parts of a shard that are on their way one after the other."""
    step = max(1, -(-size // most))
    return [(first, min(size, first + step)) for first in range(0, size, step)]
