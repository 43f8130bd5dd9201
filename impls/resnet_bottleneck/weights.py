"""What the CUDA implementations take: packed weights, float32 biases, and ones where a convolution may have a scale."""

import torch

from .._cuda.conv_weights import packed


def prepare(ops, x, reduce, reduce_bias, spatial, spatial_bias, expand, expand_bias):
    weights = (
        *(packed(reduce), reduce_bias.float()),
        *(packed(spatial), spatial_bias.float()),
        *(packed(expand), expand_bias.float()),
    )
    ones = torch.ones(max(reduce.shape[:2]), dtype=torch.float32, device=x.device)

    def run():
        return ops.run(x, *weights, ones)

    return run
