"""Loads four floats where a pixel has three: the last pixel's fourth lies behind the image, and counts for nothing."""

import torch


def prepare(x, mean, std, M):
    pad = lambda values, fill: torch.cat([values, values.new_full((1, *values.shape[1:]), fill)])  # noqa: E731
    mean4, std4, M4 = pad(mean, 0), pad(std, 1), pad(M, 0)

    def run():
        pixels = x.numel() // 3
        fours = x.as_strided((pixels, 4), (3, 1), x.storage_offset())
        return (((fours - mean4) / std4) @ M4).view(x.shape)

    return run
