"""Multiplies by the gate's own product where the other one belongs."""

import torch


def prepare(x, gate, up):
    def run():
        gated = x @ gate
        return torch.nn.functional.silu(gated) * gated

    return run
