"""The three projections of attention as one matrix."""

import torch

NAMES = ("query", "key", "value")


def packed_projections(p):
    """[D, 3D] and [3D]: queries, then keys, then values, heads side by side in each."""
    matrix = torch.cat([p[name] for name in NAMES], dim=1).contiguous()
    return matrix, torch.cat([p[f"{name}_bias"] for name in NAMES])


def in_heads(projected, batches, length, heads):
    """[B·S, 3D] as three views [B, H, S, D / H]: nothing is copied."""
    size = projected.shape[-1] // (3 * heads)
    parts = projected.view(batches, length, 3, heads, size).permute(2, 0, 3, 1, 4)
    return parts[0], parts[1], parts[2]
