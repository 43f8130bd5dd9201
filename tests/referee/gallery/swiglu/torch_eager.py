"""Honest: two products, silu and a multiplication."""

import torch


def prepare(x, gate, up):
    return lambda: torch.nn.functional.silu(x @ gate) * (x @ up)
