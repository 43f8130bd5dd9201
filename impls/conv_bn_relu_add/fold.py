"""Batch normalisation by stored statistics as one scale and one shift a channel."""

import torch

from .torch_eager import EPSILON


def scale_and_shift(gamma, beta, mean, variance):
    """float32 [O], [O] such that bn(z) = z · scale + shift."""
    scale = gamma.float() * torch.rsqrt(variance.float() + EPSILON)
    return scale, beta.float() - mean.float() * scale
