"""One Triton kernel in which each rank stores its vector into the others' memory, meets them, and sums what came.

Bound by the link: (W-1) vectors leave each rank, which with two ranks is what all-reduce must send, and with more is
W/2 times that; arriving, they cost each rank's memory a write and a read. One barrier of the blocks with their
counterparts is all the waiting. Prediction: with two ranks ahead of NCCL on small vectors, which is several barriers,
and level with it on large ones.

Reached on nvidia-h200 at 968ac8c4: 42.5 µs for float32 W=1,N=16777216, 3.16 TB/s, 74 % of the memory ceiling, 0.803
times as fast as torch_eager (unstable).
"""

import torch

from .._ranks.mailbox import open_mailbox, padded, unreachable
from .._triton.ranks import BLOCK_BYTES, constants, grid_of, push_and_sum


def unsupported(dtype, **shape):
    return unreachable(**shape)


def prepare(x):
    size, slot = x.numel(), padded(x.numel() * x.element_size())
    mailbox = open_mailbox(x.device, slot * torch.distributed.get_world_size())
    block = BLOCK_BYTES // x.element_size()
    grid = grid_of(size, block, x.device)

    def run():
        source = x.contiguous()
        y = torch.empty_like(source)
        push_and_sum[grid](
            source,
            y,
            mailbox.addresses,
            mailbox.calls,
            size,
            0,
            slot,
            mailbox.rank,
            SCATTER=False,
            BLOCK=block,
            **constants(mailbox),
        )
        return y

    return run
