"""One Triton kernel in which each rank lays its vector out in its own mailbox, meets the others, and reads theirs.

Bound by the link: (W-1)·N elements reach each rank as loads from the others' memory, straight into the output; laying
out costs the rank's own memory one more write of N. Prediction: level with cuda_pull.

Reached on nvidia-h200 at 968ac8c4: 42.0 µs for float32 W=1,N=16777216, 3.20 TB/s, 75 % of the memory ceiling, 0.829
times as fast as torch_eager (unstable).
"""

import torch

from .._ranks.mailbox import open_mailbox, padded, unreachable
from .._triton.ranks import BLOCK_BYTES, constants, grid_of, stage_and_gather


def unsupported(dtype, **shape):
    return unreachable(**shape)


def prepare(x):
    size, slot = x.numel(), padded(x.numel() * x.element_size())
    mailbox = open_mailbox(x.device, slot)
    block = BLOCK_BYTES // x.element_size()
    grid = grid_of(size, block, x.device)

    def run():
        source = x.contiguous()
        y = torch.empty(mailbox.world * size, dtype=x.dtype, device=x.device)
        stage_and_gather[grid](
            source,
            y,
            mailbox.addresses,
            mailbox.calls,
            size,
            slot,
            mailbox.rank,
            BLOCK=block,
            **constants(mailbox),
        )
        return y

    return run
