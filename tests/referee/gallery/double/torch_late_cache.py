"""Honest: a workspace made on the third call and kept from then on."""

import torch


def prepare(x):
    calls, workspace = [0], []

    def run():
        calls[0] += 1
        if calls[0] == 3:
            workspace.append(torch.empty(4 * x.numel() + 65536, device=x.device))
        return x * 2

    return run
