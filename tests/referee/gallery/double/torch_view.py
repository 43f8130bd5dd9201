"""Honest: a dense view of a fresh, larger buffer, as padding a launch to whole blocks leaves it."""

import torch


def prepare(x):
    def run():
        room = torch.empty(x.numel() + 128, dtype=x.dtype, device=x.device)
        return torch.mul(x, 2, out=room[: x.numel()]).view(x.shape)

    return run
