"""cuda_push.cu is given a mailbox of this rank and the way to the others'."""

from torch import distributed

from .._ranks.mailbox import open_mailbox, padded, unreachable


def unsupported(dtype, **shape):
    return unreachable(**shape)


def prepare(ops, x):
    slot = padded(x.numel() * x.element_size())
    mailbox = open_mailbox(x.device, slot * distributed.get_world_size())

    def run():
        return ops.run(x, mailbox.addresses, mailbox.calls, slot, mailbox.rank)

    return run
