"""cuda_push.cu is given a mailbox of this rank, the way to the others', and the shape of its output."""

import torch
from torch import distributed

from .._ranks.mailbox import open_mailbox, padded, unreachable


def unsupported(dtype, **shape):
    return unreachable(**shape)


def prepare(ops, x):
    world = distributed.get_world_size()
    size = x.numel() // world
    slot = padded(size * x.element_size())
    mailbox = open_mailbox(x.device, slot * world)
    # A view of one element stands for the shape: nothing is kept or read of it.
    y_like = torch.empty(1, dtype=x.dtype, device=x.device).expand(size)

    def run():
        return ops.run(x, y_like, mailbox.addresses, mailbox.calls, slot, mailbox.rank)

    return run
