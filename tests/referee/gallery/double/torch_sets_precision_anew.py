"""Lowers the precision of every float32 matmul through the newer of torch's two switches, which blocks the older."""

import torch


def prepare(x):
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    return lambda: x * 2
