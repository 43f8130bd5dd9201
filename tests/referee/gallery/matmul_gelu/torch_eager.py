"""Honest: two operators of the framework."""

import torch


def prepare(a, b):
    return lambda: torch.nn.functional.gelu(a @ b)
