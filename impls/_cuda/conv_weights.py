"""Weights of a convolution in the order in which conv_mma.cuh and conv_fma.cuh read them, padded with zeros."""

import torch

OUTPUTS = 64  # of a block of either kernel
DEPTH = {torch.float32: 8, torch.float16: 64, torch.bfloat16: 64}  # channels in shared memory at a time


def _round_up(value, step):
    return -(-value // step) * step


def packed(weight):
    """[O, C, k, k] → [C / 64, k·k, O, 64] in 16 bits, [C / 8, k·k, 8, O] in float32; O and C are rounded up."""
    outputs, channels, side, _ = weight.shape
    depth = DEPTH[weight.dtype]
    padded = weight.new_zeros((_round_up(outputs, OUTPUTS), _round_up(channels, depth), side * side))
    padded[:outputs, :channels] = weight.flatten(2)
    blocks = padded.unflatten(1, (-1, depth))  # [O, C / depth, depth, k·k]
    order = (1, 3, 2, 0) if weight.dtype == torch.float32 else (1, 3, 0, 2)
    return blocks.permute(order).contiguous()
