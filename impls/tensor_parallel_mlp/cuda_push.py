"""cuda_push.cu is given a mailbox of this rank, the way to the others', and a bias of zeros for the second layer."""

import torch
from torch import distributed

from .._ranks.mailbox import open_mailbox, padded, unreachable


def unsupported(dtype, **shape):
    return unreachable(**shape)


def prepare(ops, x, up, bias, down):
    slot = padded(x.shape[0] * down.shape[1] * x.element_size())
    mailbox = open_mailbox(x.device, slot * distributed.get_world_size())
    nothing = torch.zeros(down.shape[1], dtype=x.dtype, device=x.device)

    def run():
        return ops.run(x, up, bias, down, nothing, mailbox.addresses, mailbox.calls, slot, mailbox.rank)

    return run
