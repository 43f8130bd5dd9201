"""The scale folded into the matrix and the mean into one bias, so that a single addmm is left.

Bound by memory: one pass, 6 elements a pixel, by a matmul whose 3 × 3 weight fills little of any tile. M' and b are
rounded to the dtype, because addmm takes no mixed types: in 16 bits that costs accuracy.

Reached on nvidia-h200 at 968ac8c4: 26.5 ms for float32 N=1024,H=512,W=512, 243 GB/s, 5.7 % of the memory ceiling, 0.672
times as fast as torch_eager.
"""

import torch

from .affine import fold


def prepare(x, mean, std, M):
    folded, bias = (tensor.to(x.dtype) for tensor in fold(mean, std, M))

    def run():
        return torch.addmm(bias, x.reshape(-1, 3), folded).view(x.shape)

    return run
