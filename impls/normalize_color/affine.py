"""The algebra that several implementations share: y = ((x - mean) / std) · M = x · M' + b.

With M' = M / std (row c divided by std[c]) and b = -mean · M'. The weights stay for many calls, so they are folded
once, outside the timed region, in float64.
"""

import torch


def fold(mean, std, M):
    """M' [3, 3] and b [3] as float64 tensors on the weights' device."""
    folded = M.to(torch.float64) / std.to(torch.float64)[:, None]
    return folded, -(mean.to(torch.float64) @ folded)


def fold_packed(mean, std, M):
    """The 12 float32 numbers that the kernels read: the rows of M', then b."""
    folded, bias = fold(mean, std, M)
    return torch.cat([folded.reshape(-1), bias]).to(torch.float32)


def prepare_folded(ops, x, mean, std, M):
    """``prepare`` of the CUDA kernels whose ``run`` takes x and the 12 packed weights."""
    weights = fold_packed(mean, std, M)

    def run():
        return ops.run(x, weights)

    return run
