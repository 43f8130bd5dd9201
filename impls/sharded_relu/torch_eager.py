"""Shards sent to the ranks, rectified there and sent back, one step after the other.

Bound by the link, which carries (W-1)/W of the vector there and then back, never both ways at once. Prediction: twice
the time of a pipeline that uses both ways.

Reached on nvidia-h200 at 968ac8c4: 69.1 µs for float32 W=1,N=16777216, 1.94 TB/s, 45 % of the memory ceiling
(unstable).
"""

import torch
from torch import distributed

from .shards import shards, whole_size


def exchange(operations):
    """Send and receive, and let the current stream wait."""
    if operations:
        for work in distributed.batch_isend_irecv(operations):
            work.wait()


def prepare(x):
    rank, world = distributed.get_rank(), distributed.get_world_size()
    parts = shards(whole_size(x), world)
    first, end = parts[rank]
    there = [number for number in range(1, world) if parts[number][0] < parts[number][1]]
    send, receive = distributed.isend, distributed.irecv

    def root():
        source = x.contiguous()
        y = torch.empty_like(source)
        exchange([distributed.P2POp(send, source[slice(*parts[number])], number) for number in there])
        torch.relu_(y[first:end].copy_(source[first:end]))
        exchange([distributed.P2POp(receive, y[slice(*parts[number])], number) for number in there])
        return y

    def other():
        if rank in there:
            shard = torch.empty(end - first, dtype=x.dtype, device=x.device)
            exchange([distributed.P2POp(receive, shard, 0)])
            exchange([distributed.P2POp(send, shard.relu_(), 0)])
        return torch.empty_like(x)

    return root if rank == 0 else other
