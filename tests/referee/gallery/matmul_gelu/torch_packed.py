"""Honest: the weight is transposed and packed in prepare, which is allowed of weights."""

import torch


def prepare(a, b):
    packed = b.T.contiguous()
    return lambda: torch.nn.functional.gelu(torch.nn.functional.linear(a, packed))
