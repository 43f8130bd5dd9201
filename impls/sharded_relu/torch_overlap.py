"""Shards in pieces, each on its way there while the one before it is on its way back.

Bound by the link, which carries (W-1)/W of the vector each way, both ways at once; the ReLU of a piece lies between two
steps. Prediction: little more than half of torch_eager's time on large vectors, and a loss on small ones, each piece
being a launch of NCCL.

Reached on nvidia-h200 at 968ac8c4: 69.2 µs for float32 W=1,N=16777216, 1.94 TB/s, 45 % of the memory ceiling, 0.998
times as fast as torch_eager (unstable).
"""

import torch
from torch import distributed

from .shards import pieces, shards, whole_size
from .torch_eager import exchange

MOST_PIECES = 8
LEAST_BYTES = 1 << 20


def prepare(x):
    rank, world = distributed.get_rank(), distributed.get_world_size()
    parts = shards(whole_size(x), world)
    longest = max(end - first for first, end in parts)
    most = max(1, min(MOST_PIECES, longest * x.element_size() // LEAST_BYTES))
    cuts = [[(first + a, first + b) for a, b in pieces(end - first, most)] for first, end in parts]
    first, end = parts[rank]
    steps = range(max((len(cut) for cut in cuts[1:]), default=0) + 1)

    def moves(what, held, number, cut, place, offset=0):
        """The move of a piece, where there is such a piece."""
        if not 0 <= place < len(cut):
            return []
        begin, stop = cut[place]
        return [distributed.P2POp(what, held[begin - offset : stop - offset], number)]

    def root():
        source = x.contiguous()
        y = torch.empty_like(source)
        torch.relu_(y[first:end].copy_(source[first:end]))
        for step in steps:
            operations = []
            for number in range(1, world):
                operations += moves(distributed.isend, source, number, cuts[number], step)
                operations += moves(distributed.irecv, y, number, cuts[number], step - 1)
            exchange(operations)
        return y

    def other():
        shard = torch.empty(end - first, dtype=x.dtype, device=x.device)
        for step in steps:
            operations = moves(distributed.irecv, shard, 0, cuts[rank], step, first)
            operations += moves(distributed.isend, shard, 0, cuts[rank], step - 1, first)
            exchange(operations)
            if step < len(cuts[rank]):
                begin, stop = cuts[rank][step]
                shard[begin - first : stop - first].relu_()
        return torch.empty_like(x)

    return root if rank == 0 else other
