"""Lowers the precision of every float32 matmul in the process, the baseline's too."""

import torch


def prepare(x):
    torch.set_float32_matmul_precision("medium")
    return lambda: x * 2
